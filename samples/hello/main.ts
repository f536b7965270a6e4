import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

const server = await openIa(softroce({ addresses: ['127.0.0.1'] }));
const client = await openIa(softroce({ addresses: ['127.0.0.2'] }));

server.createPsp({ connQual: 7000 }).requests$.subscribe(({ cr }) => {
  const pz = server.createPz();
  const ep = server.createEndpoint({ pz });
  const inbox = server.allocate(64, { pz });
  ep.postRecv(inbox.segment());
  ep.completions$.subscribe((event) => {
    if (event.type !== 'dto') return;
    console.log(new TextDecoder().decode(inbox.bytes.subarray(0, event.transferredLength)));
    ep.disconnect('graceful');
  });
  cr.accept(ep);
});

const pz = client.createPz();
const ep = client.createEndpoint({ pz });
const outbox = client.allocate(64, { pz });
const { written } = new TextEncoder().encodeInto('hello over RDMA', outbox.bytes);
ep.connect({ address: '127.0.0.1', connQual: 7000 });
ep.connection$.subscribe(() => {
  if (ep.state === 'CONNECTED') ep.postSend(outbox.segment(0, written));
  else void client.close().then(() => server.close());
});
