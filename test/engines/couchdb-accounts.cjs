'use strict';
// What CouchDB does for accounts, in memory: users of _users, _security of databases, and who may write design documents.
// Validate functions are the server's.
const express = require('express');

/** Middleware that lets in the administrator and accounts that they made; sets who asks as express-pouchdb wants it. */
function accounts(admin) {
  const users = new Map([[admin.name, { ...admin, roles: ['_admin'] }]]);
  const security = new Map();
  const answer = (response, status, error, reason) => response.status(status).json({ error, reason });

  function whoAsks({ headers: { authorization = '' } }) {
    const [name = '', ...rest] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':');
    const user = users.get(name);
    return user !== undefined && user.password === rest.join(':') ? user : undefined;
  }

  /** As a new database of CouchDB 3 has it: administrators only. */
  const securityOf = (database) =>
    security.get(database) ?? { members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } };

  function isMember(user, database) {
    const { names = [], roles = [] } = securityOf(database).members ?? {};
    return names.includes(user.name) || roles.some((role) => user.roles.includes(role));
  }

  function serveUsers(request, response) {
    const name = decodeURIComponent(request.path.slice(1)).replace(/^org\.couchdb\.user:/, '');
    const user = users.get(name);
    if (request.method === 'GET') {
      if (user === undefined) return answer(response, 404, 'not_found', 'missing');
      return response.json({ _id: `org.couchdb.user:${name}`, _rev: user.rev, name, roles: user.roles, type: 'user' });
    }
    if (user?.rev !== request.body._rev) return answer(response, 409, 'conflict', 'Document update conflict.');
    const rev = `${Number.parseInt(user?.rev ?? '0', 10) + 1}-0`;
    users.set(name, { name, password: request.body.password, roles: request.body.roles, rev });
    return response.status(201).json({ ok: true, id: `org.couchdb.user:${name}`, rev });
  }

  const router = express.Router();
  router.use((request, response, next) => {
    const user = whoAsks(request);
    if (user === undefined) return answer(response, 401, 'unauthorized', 'Name or password is incorrect.');
    const [, database = '', document = ''] = request.path.split('/').map(decodeURIComponent);
    const isAdmin = user.roles.includes('_admin');
    const reads = request.method === 'GET' || request.method === 'HEAD';
    request.couchSession = { userCtx: { name: user.name, roles: user.roles, db: database } };
    if (isAdmin || database === '') return next();
    if (!isMember(user, database)) return answer(response, 403, 'forbidden', 'You are not allowed to access this db.');
    const isForAdmins = !reads && (document === '' ? request.method !== 'POST' : /^_(design|security)$/.test(document));
    return isForAdmins ? answer(response, 401, 'unauthorized', 'You are not a db or server admin.') : next();
  });
  router.use('/_users', express.json(), serveUsers);
  router.get('/:database/_security', ({ params }, response) => response.json(securityOf(params.database)));
  router.put('/:database/_security', express.json(), ({ params, body }, response) => {
    security.set(params.database, body);
    response.json({ ok: true });
  });
  return router;
}

module.exports = { accounts };
