import { expect, test } from 'vitest';

import { parseRetransmissions } from '#adapters/node/silent-peers.ts';

/** As /proc/net/tcp and /proc/net/tcp6 show them on a little-endian machine. */
const LINES = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:EE26 01 000000C8:00000000 01:00000082 00000003     0        0 101 3 0000000000000000 1600 4 30 1 7
   2: 0100007F:1F90 0100007F:EE27 01 000000C8:00000000 01:00000014 00000000     0        0 102 3 0000000000000000 20 4 30 10 7
   3: 0100007F:1F90 0100007F:EE28 01 00100000:00000000 04:00000014 00000002     0        0 103 3 0000000000000000 20 4 30 10 7
   4: 0100007F:1F91 0100007F:EE29 01 000000C8:00000000 01:00000082 00000005     0        0 104 3 0000000000000000 1600 4 30 1 7
   5: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200A8C0:0050 01 000000C8:00000000 01:00000082 0000000A     0        0 105 3 0000000000000000 1600 4 30 1 7
   6: 00000000000000000000000001000000:1F90 B80D0120000000000000000001000000:0051 01 000000C8:00000000 01:00000082 00000001     0        0 106 3 0000000000000000 1600 4 30 1 7
`;

test('peers to whom data was sent again are found: of this port, and not those that only have no room', () => {
  expect([...parseRetransmissions(LINES, 8080)]).toEqual([
    ['127.0.0.1 60966', 3],
    ['::ffff:192.168.0.2 80', 10],
    ['2001:db8::1 81', 1],
  ]);
});

test('and nothing in what is no such table', () => {
  expect([...parseRetransmissions('nonsense\n\n', 8080)]).toEqual([]);
});
