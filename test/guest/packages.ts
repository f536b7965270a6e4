// What the harness needs from the operating system, and how it gets there.
import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';

const PACKAGES = [
  'busybox-static',
  'cpio',
  'curl',
  'dapl2-utils',
  'gcc',
  'ibverbs-providers',
  'ibverbs-utils',
  'iperf',
  'iproute2',
  'kmod',
  'libc6-dev',
  'libibverbs-dev',
  'librdmacm-dev',
  'netcat-traditional',
  'perftest',
  'procps',
  'qemu-system-x86',
  'rdmacm-utils',
  'tcpdump',
  'tshark',
  'wget',
  'xz-utils',
] as const;

/** Installs what is missing. Returns undefined when all is there, else why nothing can run. */
export function ensurePackages(log: (line: string) => void): string | undefined {
  if (spawnSync('dpkg-query', ['--version'], { stdio: 'ignore' }).status !== 0) {
    return `this is no Debian: the guest needs the packages ${PACKAGES.join(' ')}`;
  }
  const isRoot = process.getuid?.() === 0;
  const missing = PACKAGES.filter((name) => !isInstalled(name));
  if (missing.length > 0) {
    if (!isRoot) {
      const command = `apt-get install --no-install-recommends ${missing.join(' ')}`;
      return `not root, and packages are missing: run "${command}"`;
    }
    log(`installing with apt-get: ${missing.join(' ')}`);
    apt(['update']);
    apt(['install', '--yes', '--no-install-recommends', ...missing]);
  }
  if (!isRoot) return 'not root: tap devices and network namespaces need it';
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
  } catch {
    return '/dev/net/tun cannot be opened: tap devices need it';
  }
  const namespaces = spawnSync('unshare', ['--net', '--mount', '--pid', '--fork', 'true']);
  return namespaces.status === 0 ? undefined : 'namespaces are not permitted here (unshare)';
}

export function apt(args: readonly string[], cwd?: string): void {
  execFileSync('apt-get', ['-q', '-o', 'APT::Sandbox::User=root', ...args], {
    cwd,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function isInstalled(name: string): boolean {
  const query = spawnSync('dpkg-query', ['-W', '-f', '${db:Status-Status}', name], {
    encoding: 'utf8',
  });
  return query.stdout === 'installed';
}
