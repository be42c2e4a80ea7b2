import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { continueBinding, type ContinueState, createContinueTokens, type ListIdentity } from '#core/continue-token.ts';
import { StatusError } from '#core/status-error.ts';

const tokens = createContinueTokens(secretBox([{ id: 1, key: new Uint8Array(32).fill(1) }]));
const list: ListIdentity = { audience: 'public', tenants: ['a', 'b'], group: 'example.dev', kind: 'Widget' };
const state: ContinueState = { after: { tenant: 'acme', name: 'blue' } };

describe('continue tokens', () => {
  it('open to the state that was sealed, whatever the names', () => {
    const text = fc.string({ unit: 'binary' });
    const states = fc.record(
      {
        after: fc.record({ tenant: text, name: text, at: text }, { requiredKeys: ['tenant', 'name'] }),
        cursor: text,
      },
      { requiredKeys: ['after'] },
    );
    fc.assert(
      fc.property(states, text, (state, binding) => {
        expect(tokens.open(tokens.seal(state, binding), binding)).toEqual(state);
      }),
    );
  });

  it('fit into their bound with the longest cursor and the longest names', () => {
    const longest = { after: { tenant: 't'.repeat(63), name: 'n'.repeat(253) }, cursor: 'A'.repeat(4096) };
    expect(tokens.open(tokens.seal(longest, 'x'), 'x')).toEqual(longest);
  });

  it('answer everything but their own list with one and the same 400', () => {
    const token = tokens.seal(state, continueBinding(list));
    const other = (change: Partial<ListIdentity>) => refusal(token, continueBinding({ ...list, ...change }));
    const refusals = [
      other({ audience: 'private' }),
      other({ tenants: '*' }),
      other({ tenants: ['a'] }),
      other({ group: 'other.dev' }),
      other({ kind: 'Gadget' }),
      other({ tenant: 'a' }),
      other({ labelSelector: 'a=b' }),
      other({ fieldSelector: 'metadata.name=a' }),
      refusal(`${token}A`, continueBinding(list)),
      refusal('', continueBinding(list)),
      refusal('A'.repeat(1_000_000), continueBinding(list)),
    ];
    for (const error of refusals) expect(error.toBody()).toEqual(refusals[0]!.toBody());
    expect(refusals[0]).toMatchObject({
      code: 400,
      message: expect.stringMatching(/^continue is malformed .*list from the start/),
    });
    expect(tokens.open(token, continueBinding({ ...list, tenants: ['b', 'a', 'a'] }))).toEqual(state);
  });

  it('never open when one character was changed, and throw nothing but a StatusError', () => {
    const token = tokens.seal(state, 'x');
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (index, character) => {
        fc.pre(token[index] !== character);
        const mutated = token.slice(0, index) + character + token.slice(index + 1);
        expect([400, 410]).toContain(refusal(mutated, 'x').code);
      }),
      { numRuns: 500 },
    );
  });

  it('are expired when their key left the ring, so that clients list from the start', () => {
    const rotated = createContinueTokens(secretBox([{ id: 2, key: new Uint8Array(32).fill(2) }]));
    expect(refusal(tokens.seal(state, 'x'), 'x', rotated)).toMatchObject({ reason: 'Expired', code: 410 });
  });
});

function refusal(token: string, binding: string, by = tokens): StatusError {
  try {
    by.open(token, binding);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
