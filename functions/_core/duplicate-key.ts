/** Keys that stand twice in an object of a JSON text: which one counts is told differently by every reader. */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/** The first such key of a text that is known to be JSON. */
export function duplicateKey(json: string): string | undefined {
  // Of the objects and lists around: the keys so far.
  const around: Set<string>[] = [];
  let last = '';
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '{' || token === '[') around.push(new Set());
    else if (token === '}' || token === ']') around.pop();
    else if (token === ':') {
      const key = JSON.parse(last) as string;
      const keys = around.at(-1);
      if (keys?.has(key)) return key;
      keys?.add(key);
    } else last = token;
  }
  return undefined;
}
