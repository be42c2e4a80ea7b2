/**
 * The black-box suites once more, on workerd and through a transaction pooler, and all steps of what is tried at some of
 * them: a third of all the time that tests take, so only when `PLUMBLINE_TEST_EVERYWHERE=1` asks for it. What is peculiar to
 * these is tested in any case.
 */
export const isEverywhere: boolean = process.env['PLUMBLINE_TEST_EVERYWHERE'] === '1';
if (!isEverywhere) console.warn('skipped: what takes long on this host; PLUMBLINE_TEST_EVERYWHERE=1 runs it too');
