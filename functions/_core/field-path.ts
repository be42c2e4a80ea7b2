/** Where a value lies in a document. */

export type FieldPath = readonly (string | number)[];

const MAX_PATH_CHARACTERS = 256;

/** As Kubernetes writes it: `spec.users[0].name`, `metadata.labels["example.dev/app"]`. Cut short when it is very long. */
export function fieldPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
    if (text.length > MAX_PATH_CHARACTERS) return `${text.slice(0, MAX_PATH_CHARACTERS)}…`;
  }
  return text;
}
