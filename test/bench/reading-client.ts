/** A client that reads a stream as fast as it can and looks at nothing, in a process of its own. Arguments: URL, path, token header. */

import { openRawStream } from '#test/bench/raw-stream.ts';

const [url = '', path = '', authorization = ''] = process.argv.slice(2);
await openRawStream(url, path, { authorization });
process.stdout.write('reading\n');
