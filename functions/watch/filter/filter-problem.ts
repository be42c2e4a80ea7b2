/** What is wrong with an expression, and where. */

export class FilterProblem extends Error {
  override readonly name = 'FilterProblem';
  /** Index of the character. */
  readonly at: number | undefined;

  constructor(message: string, at?: number) {
    super(message);
    this.at = at;
  }
}
