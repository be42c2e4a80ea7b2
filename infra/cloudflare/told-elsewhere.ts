/**
 * What metrics are read from by an object that does not tell of the database: who works in the background does, once for
 * the installation. Its gauges are absent.
 */
export async function toldElsewhere(): Promise<never> {
  throw new Error('told elsewhere');
}
