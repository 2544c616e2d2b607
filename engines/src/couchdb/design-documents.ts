import type { DatabaseName, ViewName } from '@gpuwhisk/common/store/artifact-store';

/** Where CouchDB keeps a view. */
export interface ViewPlace {
  design: string;
  view: string;
  /** It has a reduce function that counts. */
  counts: boolean;
  /** Its keys are names by themselves, not lists. */
  bareKeys?: boolean;
}

/** The views by the names that OpenWhisk's databases have them under; `apis` is ours. */
export const viewPlaces: Record<ViewName, ViewPlace> = {
  identities: { design: 'subjects.v2.0.0', view: 'identities', counts: false },
  'blocked-namespaces': { design: 'namespaceThrottlings', view: 'blockedNamespaces', counts: false, bareKeys: true },
  actions: { design: 'whisks.v2.1.0', view: 'actions', counts: true },
  packages: { design: 'whisks.v2.1.0', view: 'packages', counts: true },
  'packages-public': { design: 'whisks.v2.1.0', view: 'packages-public', counts: true },
  rules: { design: 'whisks.v2.1.0', view: 'rules', counts: true },
  triggers: { design: 'whisks.v2.1.0', view: 'triggers', counts: true },
  activations: { design: 'whisks.v2.1.0', view: 'activations', counts: true },
  'activations-by-name': { design: 'whisks-filters.v2.1.1', view: 'activations', counts: true },
  apis: { design: 'gpuwhisk.v1', view: 'apis', counts: true },
};

/** What a design document holds besides its id. */
export interface DesignDocument {
  language: 'javascript';
  views: Record<string, { map: string; reduce?: string }>;
}

/** Runs in CouchDB, whose engines know no newer JavaScript than ES5. Lists show these fields of every entity. */
const entityRow = `
  var row = {};
  ['namespace', 'name', 'version', 'publish', 'annotations', 'updated'].forEach(function (field) {
    if (doc[field] !== undefined) row[field] = doc[field];
  });`;

/** An entity is listed in its namespace; one in a package in the package and in the namespace. */
const emitEntity = `
  emit([doc.namespace, doc.updated], row);
  var root = doc.namespace.split('/')[0];
  if (root !== doc.namespace) emit([root, doc.updated], row);`;

const isEntity = "typeof doc.namespace === 'string' && typeof doc.updated === 'number'";

function entityView(condition: string, more: string, emitted = emitEntity): { map: string; reduce: string } {
  return {
    map: `function (doc) {\n  if (!(${isEntity} && ${condition})) return;${entityRow}${more}${emitted}\n}`,
    reduce: '_count',
  };
}

const isPackage = "doc.exec === undefined && doc.binding !== null && typeof doc.binding === 'object'";
const packageRow = '\n  row.binding = Object.keys(doc.binding).length > 0 ? doc.binding : false;';

const activationRow = `
  var row = {};
  ['namespace', 'name', 'version', 'publish', 'annotations', 'activationId', 'start', 'cause'].forEach(function (field) {
    if (doc[field] !== undefined) row[field] = doc[field];
  });
  if (typeof doc.end === 'number' && doc.end !== 0) {
    row.end = doc.end;
    row.duration = doc.duration === undefined ? doc.end - doc.start : doc.duration;
    if (doc.response && doc.response.statusCode !== undefined) row.statusCode = doc.response.statusCode;
  }`;

const isActivation =
  "typeof doc.namespace === 'string' && typeof doc.activationId === 'string' && typeof doc.start === 'number'";

/** By name, or by package and name: the package of the binding that was invoked, else that of the action's path. */
const emitByName = `
  var within = {};
  (Array.isArray(doc.annotations) ? doc.annotations : []).forEach(function (annotation) {
    if (annotation && typeof annotation.value === 'string' && within[annotation.key] === undefined) {
      within[annotation.key] = annotation.value;
    }
  });
  var parts = (within.binding || within.path || '').split('/');
  var packaged = within.binding ? parts.length >= 2 : parts.length === 3;
  emit([doc.namespace + '/' + (packaged ? parts[1] + '/' : '') + doc.name, doc.start], row);`;

function activationView(emitted: string): { map: string; reduce: string } {
  return { map: `function (doc) {\n  if (!(${isActivation})) return;${activationRow}${emitted}\n}`, reduce: '_count' };
}

const identities = `function (doc) {
  if (typeof doc.subject !== 'string' || !Array.isArray(doc.namespaces) || doc.blocked === true) return;
  doc.namespaces.forEach(function (owned) {
    var value = { _id: owned.name + '/limits', namespace: owned.name, uuid: owned.uuid, key: owned.key };
    emit([owned.name], value);
    emit([owned.uuid, owned.key], value);
  });
}`;

const blockedNamespaces = `function (doc) {
  var suffix = '/limits';
  var at = doc._id.length - suffix.length;
  if (at > 0 && doc._id.indexOf(suffix, at) === at) {
    if (doc.concurrentInvocations === 0 || doc.invocationsPerMinute === 0) emit(doc._id.substring(0, at), 1);
  } else if (doc.blocked === true && Array.isArray(doc.namespaces)) {
    doc.namespaces.forEach(function (owned) { emit(owned.name, 1); });
  }
}`;

const apis = `function (doc) {
  if (doc.kind !== 'api') return;
  emit(['namespace', doc.namespace], null);
  emit(['tenant', doc.tenant], null);
}`;

const javascript = (views: DesignDocument['views']): DesignDocument => ({ language: 'javascript', views });

/**
 * The size of a document by its namespace: its JSON text in characters, and its attachments. In `gpu` documents of these kinds
 * belong to one.
 */
const storedBytes = (inGpu: boolean): string => `function (doc) {
  var parts = doc._id.split('/');
  ${inGpu ? "if (['action-version', 'api', 'refused-record', 'training-job'].indexOf(parts.shift()) < 0) return;" : ''}
  if (parts.length < 2 || parts[0] === '' || doc._id.charAt(0) === '_') return;
  var bytes = JSON.stringify(doc).length;
  var attachments = doc._attachments || {};
  Object.keys(attachments).forEach(function (name) { bytes += attachments[name].length || 0; });
  emit(parts[0], bytes);
}`;

/** The design document that counts the bytes of namespaces, in each database that has data of theirs. */
export const storedDesign = 'gpuwhisk-stored.v1';
export const storedView = 'bytes';
export const storedDatabases: readonly DatabaseName[] = ['whisks', 'activations', 'gpu'];

const storedViews = (inGpu = false): Record<string, DesignDocument> => ({
  [storedDesign]: javascript({ [storedView]: { map: storedBytes(inGpu), reduce: '_sum' } }),
});

/** What a new database is given: views of the names that OpenWhisk's have, with the same rows. */
export const designDocuments: Record<DatabaseName, Record<string, DesignDocument>> = {
  subjects: {
    'subjects.v2.0.0': javascript({ identities: { map: identities } }),
    namespaceThrottlings: javascript({ blockedNamespaces: { map: blockedNamespaces } }),
  },
  whisks: {
    'whisks.v2.1.0': javascript({
      actions: entityView(
        'doc.exec !== undefined',
        `
  if (doc.limits !== undefined) row.limits = doc.limits;
  row.exec = { binary: !!doc.exec && doc.exec.binary === true };`,
      ),
      packages: entityView(isPackage, packageRow),
      'packages-public': entityView(
        `${isPackage} && doc.publish === true && Object.keys(doc.binding).length === 0`,
        packageRow,
        '\n  emit([doc.namespace, doc.updated], row);',
      ),
      rules: entityView(
        'doc.exec === undefined && doc.binding === undefined && doc.trigger !== undefined',
        '\n  row = 1;',
      ),
      triggers: entityView(
        'doc.exec === undefined && doc.binding === undefined && doc.trigger === undefined && doc.parameters !== undefined',
        '',
      ),
    }),
    ...storedViews(),
  },
  activations: {
    'whisks.v2.1.0': javascript({ activations: activationView('\n  emit([doc.namespace, doc.start], row);') }),
    'whisks-filters.v2.1.1': javascript({ activations: activationView(emitByName) }),
    ...storedViews(),
  },
  gpu: { 'gpuwhisk.v1': javascript({ apis: { map: apis, reduce: '_count' } }), ...storedViews(true) },
};
