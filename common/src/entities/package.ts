import type { Parameter } from './parameters.js';

/** The package that a binding refers to, possibly in another namespace. */
export interface PackageBinding {
  namespace: string;
  name: string;
}

/** A package, or a binding to one, decoded. */
export interface WhiskPackage {
  namespace: string;
  name: string;
  /** Absent: the package has actions of its own. */
  binding?: PackageBinding;
  parameters: Parameter[];
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** Epoch ms of the last write. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}
