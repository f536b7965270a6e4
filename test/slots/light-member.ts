/**
 * A process that only has a slot of a shared address: `light-member.js ADDRESS PORT SERVICE`. It
 * joins, listens, notes a connection and leaves again, over and over, until it is killed.
 */
import { gidFromIp, silentLogger, type SpiError } from '../../core/spi/index.js';
import { joinSharedAddress } from '../../providers/softroce/group-port.js';

const [, , address = '', port = '0', service = '0'] = process.argv;
const gids = [gidFromIp(address)];
process.stdout.write('starts\n');
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
    // A slot of one that was killed rests, and so may all of them; anything else is a fault.
    const { code, message } = error as SpiError;
    process.stdout.write(`failed ${code} ${message}\n`);
  }
}
