/** What one process of an installation does. All of it lies in the database, so any number of processes share each. */

export const PROCESS_ROLES = ['api', 'watch', 'publish', 'reconcile'] as const;

/** `api` and `watch` have listeners for callers; the others have none but that of operators. */
export type ProcessRole = (typeof PROCESS_ROLES)[number];
