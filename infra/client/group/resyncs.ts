/** One resync of a tenant at a time, whatever number of its lanes ask for one while it runs. */

export function createResyncs(resync: (tenant: string) => void | Promise<void>): (tenant: string) => Promise<void> {
  const running = new Map<string, Promise<void>>();
  return (tenant) => {
    const known = running.get(tenant);
    if (known) return known;
    const call = (async () => {
      try {
        await resync(tenant);
      } finally {
        running.delete(tenant);
      }
    })();
    running.set(tenant, call);
    return call;
  };
}
