import { basename } from 'node:path';
import { WskError } from '../errors.js';

/** What can be wrong with a project's files, as OpenWhisk's wskdeploy calls it. */
export type FileErrorType =
  | 'ERROR_FILE_READ_ERROR'
  | 'ERROR_MANIFEST_FILE_NOT_FOUND'
  | 'ERROR_YAML_FILE_FORMAT_ERROR'
  | 'ERROR_YAML_INVALID_RUNTIME'
  | 'ERROR_YAML_PARSER_ERROR';

/** A mistake in a project's files; the form is wskdeploy's, less the line of its own source that it begins with. */
export function fileError(type: FileErrorType, file: string, message: string): WskError {
  return bareError(`[${type}]: File: [${basename(file)}]: ${message}\n`);
}

/** A message that is printed as it is; the exit code is 1. */
export function bareError(message: string): WskError {
  return new WskError(message, { showPrefix: false });
}
