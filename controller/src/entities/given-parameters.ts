import { malformedContent } from '@gpuwhisk/common/errors';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';

/** What encrypted parameters of a PUT may be. */
export interface KnownParameters {
  /** Of the action or package as it is stored. */
  stored: readonly Parameter[];
  /** Of the package that it is in or binds, which a GET shows with its own. */
  inherited: readonly Parameter[];
}

/**
 * The parameters of a PUT, with encrypted values only where these are what a GET has shown: stored ones stay as they are,
 * inherited ones are left to their package. Any other is refused, since the author of the code would read it: another
 * namespace's, from a shared package. Throws ApiError (400).
 */
export function acceptGiven(given: readonly Parameter[], { stored, inherited }: KnownParameters): Parameter[] {
  return given.flatMap((parameter) => {
    const { encryption, ...plain } = parameter;
    if (encryption === undefined) return [plain];
    const same = stored.find((one) => isSame(one, parameter));
    if (same !== undefined) return [{ ...parameter, ...(same.lockedIn !== undefined && { lockedIn: same.lockedIn }) }];
    if (inherited.some((one) => isSame(one, parameter))) return [];
    throw malformedContent(
      `The value of parameter '${parameter.key}' is encrypted and is not the one that is stored here. ` +
        'Give it in plain text, or leave it out.',
    );
  });
}

/** Whether some value is given encrypted. */
export function hasEncrypted(given: readonly Parameter[] | undefined): boolean {
  return given?.some(({ encryption }) => encryption !== undefined) === true;
}

function isSame(one: Parameter, other: Parameter): boolean {
  return one.key === other.key && one.encryption === other.encryption && one.value === other.value;
}
