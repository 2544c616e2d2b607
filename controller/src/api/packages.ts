import type { PackageBinding } from '@gpuwhisk/common/entities/package';
import { packageToApi } from '@gpuwhisk/common/entities/package';
import { isApiError, noSuchResource, packageNameReserved } from '@gpuwhisk/common/errors';
import { parametersBound } from '@gpuwhisk/common/entities/limits';
import type { JsonObject } from '@gpuwhisk/common/json';
import { inheritedParameters } from '../actions/action-resolver.js';
import { checkPackageShown, providerOf, readablePackages } from '../entitlement/rights.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { piecesAnswer, readOrRefuse } from '../http/list-answer.js';
import { readPutBody, booleanParameter } from '../http/request.js';
import { isFeed, packageContents, readPackagePut, bindingRefusal } from '../packages/package-store.js';
import type { PackagedAction } from '../packages/package-store.js';
import { listRows } from './collections.js';
import type { ApiContext } from './api-context.js';
import { boundsOf } from '../entitlement/limits.js';
import {
  errorResponses,
  forceParameter,
  listParameters,
  namespaceParameter,
  overwriteParameter,
  packageNameParameter,
} from './descriptions.js';
import { apiRoot, checkOwner, entityNameOf, namespaceOf } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<ApiContext, 'clock' | 'config' | 'logger' | 'packageWriter' | 'packages' | 'store'>;

/** Name of the default package in paths of web actions; reserved for that use. */
const reservedName = 'default';

function packageNameOf(call: IdentifiedCall): PackageBinding {
  return { namespace: namespaceOf(call), name: entityNameOf(call, 'packageName') };
}

/** The package that the path names, in the caller's own namespace. Throws ApiError (400, 403). */
function ownPackage(call: IdentifiedCall): PackageBinding {
  const name = packageNameOf(call);
  checkOwner(call, name.namespace, name.name);
  return name;
}

async function putPackage(context: Context, call: IdentifiedCall): Promise<Answer> {
  const name = ownPackage(call);
  const bounds = boundsOf(context, call.identity);
  // Both lists of parameters at their maximum sizes, and the same again for the other fields.
  const body = await readPutBody(call.request, parametersBound(context.config.limits, 3));
  if (name.name === reservedName) throw packageNameReserved(name.name);
  const put = readPackagePut(body, name.namespace, bounds);
  const overwrite = booleanParameter(call.query, 'overwrite', false);
  if (put.binding !== undefined) {
    await readablePackages(context.packages, call.identity, put.binding).catch((error: unknown) => {
      throw bindingRefusal(error);
    });
  }
  const written = await context.packageWriter.put(name, put, overwrite, context.clock.now());
  return jsonAnswer(packageToApi(written));
}

async function getPackage(context: Context, call: IdentifiedCall): Promise<Answer> {
  const name = packageNameOf(call);
  const chain = await readablePackages(context.packages, call.identity, name).catch((error: unknown) => {
    const missing = isApiError(error) && error.status === 404;
    throw missing ? noSuchResource(`${name.namespace}/${name.name}`) : error;
  });
  if (context.config.sharedPackagesExecuteOnly) checkPackageShown(call.identity.namespace.name, name, chain);
  const reader = call.identity.namespace.uuid;
  const contents = (): AsyncGenerator<PackagedAction[]> => packageContents(context, providerOf(chain), reader);
  const shown = packageToApi({ ...chain[0], parameters: inheritedParameters(chain) });
  return piecesAnswer(packageText(shown, contents), context);
}

/** Characters of feeds that are kept while the actions before them are sent; of more, all is read once more. */
const keptCharacters = 64 * 1024;

/** The JSON text of a package with its actions and its feeds, in pieces. */
async function* packageText(
  shown: JsonObject,
  contents: () => AsyncGenerator<PackagedAction[]>,
): AsyncGenerator<Uint8Array> {
  let feeds: string[] | undefined = [];
  let kept = 0;
  yield Buffer.from(`${JSON.stringify(shown).slice(0, -1)},"actions":[`);
  let separator = '';
  for await (const some of contents()) {
    const actions = some.filter((action) => !isFeed(action)).map((action) => JSON.stringify(action));
    for (const feed of feeds === undefined ? [] : some.filter(isFeed)) {
      const text = JSON.stringify(feed);
      kept += text.length;
      if (kept <= keptCharacters) feeds?.push(text);
      else feeds = undefined;
    }
    if (actions.length === 0) continue;
    yield Buffer.from(separator + actions.join(','));
    separator = ',';
  }
  yield Buffer.from('],"feeds":[');
  if (feeds !== undefined) yield Buffer.from(feeds.join(','));
  else {
    separator = '';
    for await (const some of contents()) {
      const found = some.filter(isFeed).map((feed) => JSON.stringify(feed));
      if (found.length === 0) continue;
      yield Buffer.from(separator + found.join(','));
      separator = ',';
    }
  }
  yield Buffer.from(']}');
}

async function deletePackage(context: Context, call: IdentifiedCall): Promise<Answer> {
  const name = ownPackage(call);
  const force = booleanParameter(call.query, 'force', false);
  const deleted = context.packageWriter.delete(name, force, call.identity.namespace.uuid);
  return jsonAnswer(packageToApi(await readOrRefuse(deleted)));
}

/** Lists packages. Every caller may list the shared packages of any namespace. */
function listPackages(context: Context, call: IdentifiedCall): Promise<Answer> {
  const path = namespaceOf(call);
  const view = path === call.identity.namespace.name ? 'packages' : 'packages-public';
  return listRows(context, call, { collection: 'packages', view, path });
}

/** Routes to packages and bindings. */
export function packageRoutes(context: Context): Route[] {
  const path = `${apiRoot}/namespaces/{namespace}/packages`;
  const shared = { access: 'identified', tag: 'Packages' } as const;
  const one = { ...shared, path: `${path}/{packageName}` };
  const names = [namespaceParameter, packageNameParameter];
  const found = { 200: { description: 'The package', schema: 'Package' } } as const;
  return [
    {
      ...shared,
      method: 'GET',
      path,
      trailingSlash: true,
      operationId: 'getAllPackages',
      summary: 'Packages of a namespace, last written first; of other namespaces shared packages only',
      parameters: [namespaceParameter, ...listParameters],
      responses: {
        200: { description: 'Packages', schema: { arrayOf: 'PackageMeta', count: 'packages' } },
        ...errorResponses(400, 401, 403, 500),
      },
      handle: (call: IdentifiedCall) => listPackages(context, call),
    },
    {
      ...one,
      method: 'PUT',
      stores: true,
      operationId: 'updatePackage',
      summary: 'Create or update a package or binding',
      parameters: [...names, overwriteParameter],
      body: { schema: 'PackagePut', required: true },
      responses: { ...found, ...errorResponses(400, 401, 403, 409, 413, 422, 500) },
      handle: (call: IdentifiedCall) => putPackage(context, call),
    },
    {
      ...one,
      method: 'GET',
      operationId: 'getPackageByName',
      summary: 'A package with its actions and feeds',
      parameters: names,
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 422, 500) },
      handle: (call: IdentifiedCall) => getPackage(context, call),
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'deletePackage',
      summary: 'Delete a package',
      parameters: [...names, forceParameter],
      responses: { ...found, ...errorResponses(400, 401, 403, 404, 409, 500) },
      handle: (call: IdentifiedCall) => deletePackage(context, call),
    },
  ];
}
