/**
 * The black-box suites once more, on workerd and through a transaction pooler: a third of all the time that tests take, so
 * only when `PLUMBLINE_TEST_EVERYWHERE=1` asks for it. What is peculiar to these is tested in any case.
 */
export const isEverywhere: boolean = process.env['PLUMBLINE_TEST_EVERYWHERE'] === '1';
if (!isEverywhere)
  console.warn('skipped: the black-box suites on this host; PLUMBLINE_TEST_EVERYWHERE=1 runs them too');
