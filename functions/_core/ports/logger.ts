/** PORT. Where functions write their log. pino's loggers fit. Fields never hold secrets, tokens or cursors. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  /** `fields.err` is the error, with its causes. */
  error(fields: object, message: string): void;
  /** One whose every line has these fields too. */
  child(fields: object): Logger;
}
