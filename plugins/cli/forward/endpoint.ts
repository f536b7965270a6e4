/** The text form of a forwarder's endpoint: `tcp:HOST:PORT`, `unix:PATH`, `rsocket:HOST:PORT`. */

export type Endpoint =
  | { readonly kind: 'tcp' | 'rsocket'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

const FORMS = 'tcp:HOST:PORT, rsocket:HOST:PORT or unix:PATH';
/** The longest path of a Unix socket on Linux: unix(7). */
const LONGEST_PATH_BYTES = 107;
/** A host, or an IPv6 address in brackets; then the port. */
const HOST_AND_PORT = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:[\]]+)):(?<port>[^:]*)$/;

/**
 * Parses an endpoint.
 * @param leastPort 0 if the system may choose the port
 * @throws RangeError naming the mistake and the allowed values
 */
export function endpointOf(text: string, leastPort: 0 | 1): Endpoint {
  const colon = text.indexOf(':');
  const kind = text.slice(0, Math.max(colon, 0));
  const rest = text.slice(colon + 1);
  if (kind === 'unix') return { kind, path: pathOf(rest) };
  if (kind !== 'tcp' && kind !== 'rsocket') throw refused(text, `it must be ${FORMS}`);
  const { ipv6, host = ipv6, port = '' } = HOST_AND_PORT.exec(rest)?.groups ?? {};
  if (host === undefined) {
    throw refused(text, `it must be ${kind}:HOST:PORT, an IPv6 address in brackets`);
  }
  const number = Number(port);
  if (!/^\d+$/.test(port) || number < leastPort || number > 65535) {
    const limits = `an integer from ${leastPort} to 65535`;
    throw refused(text, `its port is ${JSON.stringify(port)}; it must be ${limits}`);
  }
  return { kind, host, port: number };
}

function pathOf(path: string): string {
  const bytes = Buffer.byteLength(path);
  if (bytes > 0 && bytes <= LONGEST_PATH_BYTES) return path;
  const limits = `it must have 1 to ${LONGEST_PATH_BYTES}`;
  throw refused(`unix:${path}`, `its path has ${bytes} bytes; ${limits}`);
}

function refused(text: string, why: string): RangeError {
  return new RangeError(`${JSON.stringify(text)}: ${why}`);
}

/** Formats an endpoint as a user types it. */
export function endpointText(endpoint: Endpoint): string {
  return endpoint.kind === 'unix'
    ? `unix:${endpoint.path}`
    : `${endpoint.kind}:${hostText(endpoint.host)}:${endpoint.port}`;
}

function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
