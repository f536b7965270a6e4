/**
 * What the verbs provider says to who has few rights: opens the first device, and prints a line for
 * each thing that it is refused, or that it is not.
 */
import { DatError, openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';

const KIB = 1024;

async function attempt(what: string, call: () => unknown): Promise<void> {
  try {
    await call();
    process.stdout.write(`${what}: allowed\n`);
  } catch (error) {
    if (!DatError.isDatError(error)) throw error;
    process.stdout.write(`${what}: ${error.code} ${error.message}\n`);
  }
}

try {
  const ia = await openIa(verbs());
  process.stdout.write('open: allowed\n');
  const pz = ia.createPz();
  await attempt('datagrams', () =>
    ia.mad.registerAgent({ managementClass: 0x30, oui: 0x02da91, methods: [1] }),
  );
  await attempt('XRC', () => ia.openXrcDomain());
  const attributes = { multicastLoopback: false };
  await attempt('own multicast blocked', () => ia.createUdEndpoint({ pz, attributes }));
  const ep = ia.createUdEndpoint({ pz });
  await attempt('loopback false', () => ep.joinMulticast('239.1.2.3', { loopback: false }));
  await attempt('sendOnly', () => ep.joinMulticast('239.1.2.3', { sendOnly: true }));
  await attempt('256 KiB', () => ia.allocate(256 * KIB, { pz }));
  await attempt('4 MiB', () => ia.allocate(4096 * KIB, { pz }));
  await attempt('a pooled Buffer', () => ia.createLmr(Buffer.from('pooled'), { pz }));
  await ia.close('abrupt');
  process.stdout.write('closed\n');
} catch (error) {
  if (!DatError.isDatError(error)) throw error;
  process.stdout.write(`open: ${error.code} ${error.message}\n`);
}
