/**
 * A process that only has a slot of a shared address: `light-member.js ADDRESS PORT SERVICE` and
 * when it is to be killed (deadly-addon.ts). It joins, listens, notes a connection and leaves
 * again, over and over, until then.
 */
import { gidFromIp, silentLogger, type SpiError } from '../../core/spi/index.js';
import { joinSharedAddress } from '../../providers/softroce/socket-port.js';
import { DeadlyAddon, deathOf } from './deadly-addon.js';

const SLOW_MS = 3_000;
const [, , address = '', port = '0', service = '0', ...death] = process.argv;
const gids = [gidFromIp(address)];
// It has no device that could read what comes to a broker, or send a DREQ: others are that, as long
// as there is one.
new DeadlyAddon(deathOf(death)).beSlow(SLOW_MS);
for (;;) {
  try {
    const group = await joinSharedAddress({
      gids,
      udpPort: Number(port),
      port: 'native',
      logger: silentLogger,
    });
    group.share.claimService(BigInt(service));
    group.share.noteConnection({
      localQpn: group.share.slot << 16,
      remoteQpn: 1,
      localCommId: 1,
      remoteCommId: 2,
      peerGid: gids[0]!,
      localGidIndex: 0,
    });
    process.stdout.write(`joined ${group.share.slot}\n`);
    await new Promise((resolve) => setTimeout(resolve, 1 + (process.pid % 5)));
    group.share.forgetConnection(1);
    group.share.releaseService(BigInt(service));
    group.leave();
  } catch (error) {
    const { code, message } = error as SpiError;
    process.stdout.write(`failed ${code} ${message}\n`);
  }
}
