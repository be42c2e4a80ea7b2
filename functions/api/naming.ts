/** The name of a new object: the one that the body has, or generated ones until one is free. */

import { generatedName, namePrefixProblem, SUFFIX_ALPHABET, SUFFIX_CHARACTERS } from '#core/generated-name.ts';
import { dnsSubdomainProblem } from '#core/names.ts';
import { invalidObject, type ObjectAddress, type ObjectRequest } from '#core/object-validation.ts';
import { StatusError } from '#core/status-error.ts';

/** So many generated names are tried, as in Kubernetes. */
const MAX_ATTEMPTS = 8;
/** The largest multiple of the alphabet's length in a byte; bytes above it would favour the first letters. */
const FAIR_BYTES = 256 - (256 % SUFFIX_ALPHABET.length);

export interface Naming {
  /** How messages call the object while it has no name. */
  readonly shown: string;
  /** @throws {StatusError} AlreadyExists when the name is taken, or as many generated ones as are tried. */
  create<T>(attempt: (name: string) => Promise<T>): Promise<T>;
}

/** A name counts before `generateName`. @throws {StatusError} Invalid */
export function namingOf(
  address: ObjectAddress,
  { name, generateName }: Pick<ObjectRequest, 'name' | 'generateName'>,
  suffix: () => string,
): Naming {
  if (name !== undefined) {
    refuse('metadata.name', name, dnsSubdomainProblem(name));
    return { shown: name, create: (attempt) => attempt(name) };
  }
  if (generateName === undefined) {
    const message = 'required, or metadata.generateName in its place';
    throw invalidObject(address, [{ reason: 'FieldValueRequired', message, field: 'metadata.name' }]);
  }
  refuse('metadata.generateName', generateName, namePrefixProblem(generateName));
  return { shown: generateName, create: (attempt) => createGenerated(generateName, suffix, attempt) };

  function refuse(field: string, text: string, message: string | undefined): void {
    if (message === undefined) return;
    throw invalidObject({ ...address, name: text }, [{ reason: 'FieldValueInvalid', message, field }]);
  }
}

async function createGenerated<T>(
  prefix: string,
  suffix: () => string,
  attempt: (name: string) => Promise<T>,
): Promise<T> {
  let taken: StatusError | undefined;
  for (let count = 0; count < MAX_ATTEMPTS; count++) {
    try {
      return await attempt(generatedName(prefix, suffix()));
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
      taken = error;
    }
  }
  const message = `${MAX_ATTEMPTS} names made of generateName ${JSON.stringify(prefix)} were all taken; try again, or with another prefix`;
  throw new StatusError('AlreadyExists', message, {
    cause: taken,
    ...(taken?.details && { details: taken.details }),
  });
}

/** A suffix for a generated name; each letter of the alphabet is as likely. */
export function randomSuffix(): string {
  let suffix = '';
  while (suffix.length < SUFFIX_CHARACTERS) {
    for (const byte of crypto.getRandomValues(new Uint8Array(2 * SUFFIX_CHARACTERS))) {
      if (byte < FAIR_BYTES && suffix.length < SUFFIX_CHARACTERS)
        suffix += SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length];
    }
  }
  return suffix;
}
