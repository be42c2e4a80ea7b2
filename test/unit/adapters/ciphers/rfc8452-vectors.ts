/**
 * Known answers for AES-256-GCM-SIV, in hexadecimal; `result` is ciphertext and tag.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8452#appendix-C.2
 */

export interface GcmSivVector {
  readonly key: string;
  readonly nonce: string;
  readonly associatedData: string;
  readonly plaintext: string;
  readonly result: string;
}

const key = '01'.padEnd(64, '0');
const nonce = '03'.padEnd(24, '0');
const number = (value: string, bytes = 16) => value.padEnd(bytes * 2, '0');
const numbers = (...values: string[]) => values.map((value) => number(value)).join('');

/** Those whose associated data is text. */
export const gcmSivVectors: readonly GcmSivVector[] = [
  { key, nonce, associatedData: '', plaintext: '', result: '07f5f4169bbf55a8400cd47ea6fd400f' },
  {
    key,
    nonce,
    associatedData: '',
    plaintext: number('01', 8),
    result: 'c2ef328e5c71c83b843122130f7364b761e0b97427e3df28',
  },
  {
    key,
    nonce,
    associatedData: '',
    plaintext: number('01', 12),
    result: '9aab2aeb3faa0a34aea8e2b18ca50da9ae6559e48fd10f6e5c9ca17e',
  },
  {
    key,
    nonce,
    associatedData: '',
    plaintext: numbers('01'),
    result: '85a01b63025ba19b7fd3ddfc033b3e76c9eac6fa700942702e90862383c6c366',
  },
  {
    key,
    nonce,
    associatedData: '',
    plaintext: numbers('01', '02'),
    result: '4a6a9db4c8c6549201b9edb53006cba821ec9cf850948a7c86c68ac7539d027fe819e63abcd020b006a976397632eb5d',
  },
  {
    key,
    nonce,
    associatedData: '',
    plaintext: numbers('01', '02', '03'),
    result:
      'c00d121893a9fa603f48ccc1ca3c57ce7499245ea0046db16c53c7c66fe717e3' +
      '9cf6c748837b61f6ee3adcee17534ed5790bc96880a99ba804bd12c0e6a22cc4',
  },
  {
    key,
    nonce,
    associatedData: '01',
    plaintext: number('02', 8),
    result: '1de22967237a813291213f267e3b452f02d01ae33e4ec854',
  },
  {
    key,
    nonce,
    associatedData: '01',
    plaintext: numbers('02'),
    result: 'c91545823cc24f17dbb0e9e807d5ec17b292d28ff61189e8e49f3875ef91aff7',
  },
  {
    key,
    nonce,
    associatedData: '01',
    plaintext: numbers('02', '03', '04', '05'),
    result:
      '67fd45e126bfb9a79930c43aad2d36967d3f0e4d217c1e551f59727870beefc9' +
      '8cb933a8fce9de887b1e40799988db1fc3f91880ed405b2dd298318858467c89' +
      '5bde0285037c5de81e5b570a049b62a0',
  },
  {
    key,
    nonce,
    associatedData: number('01', 12),
    plaintext: number('02', 4),
    result: '22b3f4cd1835e517741dfddccfa07fa4661b74cf',
  },
  {
    key,
    nonce,
    associatedData: `${numbers('01')}0200`,
    plaintext: `${numbers('03')}04000000`,
    result: '43dd0163cdb48f9fe3212bf61b201976067f342bb879ad976d8242acc188ab59cabfe307',
  },
  {
    key: 'e66021d5eb8e4f4066d4adb9c33560e4f46e44bb3da0015c94f7088736864200',
    nonce: 'e0eaf5284d884a0e77d31646',
    associatedData: '',
    plaintext: '',
    result: '169fbb2fbf389a995f6390af22228a62',
  },
];
