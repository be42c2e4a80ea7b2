/** An error as the driver makes them: by its code callers know that another attempt may succeed. */
export function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
