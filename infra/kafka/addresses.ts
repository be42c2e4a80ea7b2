/** Where the nodes of a cluster listen. */

import { freePorts, requireFreePort } from '#infra/kafka/ports.ts';
import type { NodeAddress } from '#infra/kafka/properties.ts';

export interface AddressParams {
  /** Nodes. */
  readonly count: number;
  /** Of the first node, for clients; the next ones have the next ports. Absent: free ones. */
  readonly port: number | undefined;
  /** `host:port` per node. */
  readonly advertised: readonly string[] | undefined;
}

/** Chooses what is not given among the ports that are free now. @throws {StartError} when a given port is taken. */
export async function chooseAddresses({ count, port, advertised }: AddressParams): Promise<NodeAddress[]> {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const clientPorts = port === undefined ? await freePorts(count) : ids.map((id) => port + id - 1);
  if (port !== undefined) for (const each of clientPorts) await requireFreePort(each);
  const others = await freePorts(2 * count, clientPorts);
  return ids.map((id, index) => {
    const address = advertised?.[index];
    return {
      id,
      port: at(clientPorts, index),
      internalPort: at(others, 2 * index),
      controllerPort: at(others, 2 * index + 1),
      ...(address !== undefined && { advertised: address }),
    };
  });
}

function at(ports: readonly number[], index: number): number {
  const port = ports[index];
  if (port === undefined) throw new RangeError(`there is no port ${index}`);
  return port;
}
