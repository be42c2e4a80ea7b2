/**
 * kafkajs opens a connection when a request needs it. Requests that come before it is there open it again, each for
 * itself; all but the last are never used and never closed: four reads at once make four connections. Here they wait for
 * the one.
 */

import { type Connection, default as ConnectionClass } from 'kafkajs/src/network/connection.js';

export function fixConnecting(): void {
  const { connect } = ConnectionClass.prototype;
  const connecting = new WeakMap<Connection, Promise<unknown>>();
  ConnectionClass.prototype.connect = function connectOnce(this: Connection): Promise<unknown> {
    const known = connecting.get(this);
    if (known) return known;
    const begun = connect.call(this).finally(() => connecting.delete(this));
    connecting.set(this, begun);
    return begun;
  };
}
