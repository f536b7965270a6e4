/** A program of a consumer: both ends of a message over softroce, in one process. */

/**
 * @param address where it listens
 * @returns the body of an asynchronous function, for which `easy` is the entry `dapl/easy`
 */
export function talk(address: string): string {
  return `
  const server = await easy.listen({ address: '${address}' });
  const accepting = server.accept();
  const there = await easy.connect({ address: '${address}', port: server.port });
  const here = await accepting;
  await there.send(Buffer.from('hello'));
  console.log(Buffer.from((await here.receive()).bytes).toString());
  await there.close();
  await here.close();
  await server.close();`;
}
