import assert from 'node:assert/strict';
import { DatError, localAddressToward } from 'dapl';

const refusal = (subtype: string, says: RegExp) => (error: unknown) =>
  DatError.isDatError(error) && error.subtype === subtype && says.test(error.message);

describe('localAddressToward', () => {
  it('says which own address leads to a peer', async () => {
    assert.equal(await localAddressToward('127.0.0.1'), '127.0.0.1');
    assert.equal(await localAddressToward('127.9.9.9'), '127.0.0.1');
  });

  it('refuses what is no address, and one that no route leads to', async () => {
    const malformed = refusal('DAT_INVALID_ADDRESS_MALFORMED', /"there" is not an IP address/);
    await assert.rejects(localAddressToward('there'), malformed);
    const wrong = refusal('DAT_INVALID_ARG1', /address is undefined/);
    await assert.rejects(localAddressToward(undefined as never), wrong);
    const nowhere = refusal('DAT_INVALID_ADDRESS_UNREACHABLE', /255\.255\.255\.255.*\(E[A-Z]+\)/);
    await assert.rejects(localAddressToward('255.255.255.255'), nowhere);
  });
});
