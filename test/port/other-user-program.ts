/**
 * A program for other-user.test.ts, run by another user: opens softroce and does as told.
 *
 *   other-user-program.js <address> <udpPort> echo|open
 *
 * echo: accepts one connection, tells where it may be written, sends back what it receives. Lines
 * on stdout are JSON.
 */
import { type DatError, MemPrivileges, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

const LENGTH = 1 << 18;
const [, , address = '', udpPort, mode] = process.argv;

function say(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

async function echo(): Promise<void> {
  const ia = await openIa(softroce({ addresses: [address], udpPort: Number(udpPort) }));
  const pz = ia.createPz();
  const ep = ia.createEndpoint({ pz });
  const lmr = ia.allocate(LENGTH, { pz, privileges: MemPrivileges.ALL });
  const psp = ia.createPsp({ connQual: 7471 });
  psp.requests$.subscribe(({ cr }) => cr.accept(ep));
  ep.postRecv(lmr.segment(), 1);
  ep.completions$.subscribe((event) => {
    if (event.type === 'dto' && event.cookie === 1 && event.status === 0) {
      ep.postSend(lmr.segment(0, event.transferredLength), 2);
    }
  });
  ep.connection$.subscribe(({ number }) => say({ event: number }));
  // Peers write and read here.
  const { address: at, rmrContext } = ia.allocate(LENGTH, { pz, privileges: MemPrivileges.ALL });
  say({ uid: process.getuid?.(), address: String(at), rmrContext });
}

async function open(): Promise<void> {
  try {
    const ia = await openIa(softroce({ addresses: [address], udpPort: Number(udpPort) }));
    await ia.close();
    say({ opened: true });
  } catch (error) {
    const { code, message } = error as DatError;
    say({ code, message });
  }
}

await (mode === 'open' ? open() : echo());
