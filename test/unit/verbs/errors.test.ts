import assert from 'node:assert/strict';
import {
  addonMissing,
  deviceNodeRefused,
  type DeviceNode,
  librariesMissing,
  memoryRefused,
  registrationOutOfMemory,
  sizeText,
} from '../../../providers/verbs/system/errors.js';

const MIB = 2 ** 20;
const node: DeviceNode = {
  path: '/dev/infiniband/uverbs0',
  module: 'ib_uverbs',
  facts: { mode: 0o600, owner: 'root', group: 'root' },
  user: 'alice',
  groups: ['alice', 'video'],
};

describe('verbs: sentences', () => {
  it('missing libraries: which, why, and how to get them', () => {
    const { code, message } = librariesMissing([
      { name: 'libibverbs.so.1', problem: 'cannot open shared object file' },
      { name: 'librdmacm.so.1', problem: 'cannot open shared object file' },
    ]);
    assert.equal(code, 'ENODEV');
    assert.match(message, /libibverbs\.so\.1 \(cannot open.*librdmacm\.so\.1 \(cannot open/);
    const packages = 'apt-get install libibverbs1 librdmacm1 libibumad3 ibverbs-providers';
    assert.ok(message.includes(packages), message);
    assert.match(message, /modprobe -a ib_uverbs rdma_ucm ib_umad/);
  });

  it('a missing addon: how to build it', () => {
    const { code, message } = addonMissing('no prebuild for linux-riscv64');
    assert.equal(code, 'ENODEV');
    assert.match(message, /no prebuild for linux-riscv64.*npm run build:native/);
  });

  describe('a file of /dev/infiniband', () => {
    it('that only root may open: mode, owner, group, who we are, a rule of udev', () => {
      const { code, message } = deviceNodeRefused('EACCES', node);
      assert.equal(code, 'EACCES');
      assert.match(message, /uverbs0 \(mode 0600, owner root, group root\)/);
      assert.match(message, /does not open for alice, in groups alice, video/);
      assert.match(message, /KERNEL=="uverbs\*", GROUP="rdma", MODE="0660"/);
    });

    it('that a group may open: join it', () => {
      const facts = { mode: 0o660, owner: 'root', group: 'rdma' };
      const { message } = deviceNodeRefused('EACCES', { ...node, facts, groups: ['alice'] });
      assert.match(message, /in group alice; join the group: "usermod -aG rdma \$USER"/);
    });

    it('that everybody may open: a container or a security module', () => {
      const facts = { mode: 0o666, owner: 'root', group: 'root' };
      const { code, message } = deviceNodeRefused('EPERM', { ...node, facts });
      assert.equal(code, 'EPERM');
      assert.match(message, /mode 0666.*container.*pass the device in/);
    });

    it('that is not there: the kernel module', () => {
      const { path, module, user, groups } = node;
      const { code, message } = deviceNodeRefused('ENOENT', { path, module, user, groups });
      assert.equal(code, 'ENODEV');
      assert.equal(
        message,
        '/dev/infiniband/uverbs0 is not there: load its kernel module, "modprobe ib_uverbs"',
      );
    });

    it('another error: its name', () => {
      assert.match(deviceNodeRefused('EMFILE', node).message, /cannot be opened: EMFILE/);
    });
  });

  describe('ENOMEM of a registration', () => {
    it('names the request, the limit, what is in use, and how to raise it', () => {
      const memory = { limitBytes: 8 * MIB, lockedBytes: 7.5 * MIB };
      const { code, message } = registrationOutOfMemory(4 * MIB, 6 * MIB, memory);
      assert.equal(code, 'ENOMEM');
      assert.match(message, /cannot pin 4 MiB/);
      assert.match(message, /RLIMIT_MEMLOCK, "ulimit -l"\) is 8 MiB, of which 7\.5 MiB are in use/);
      assert.match(message, /6 MiB are registered on this device already/);
      assert.match(message, /ulimit -l unlimited.*limits\.conf.*LimitMEMLOCK=infinity/);
    });

    it('does not blame a limit that is not there', () => {
      const memory = { limitBytes: Infinity, lockedBytes: 0 };
      const { message } = registrationOutOfMemory(MIB, 0, memory);
      assert.match(message, /RLIMIT_MEMLOCK is unlimited, so the machine is out of memory/);
      assert.doesNotMatch(message, /raise it/);
    });
  });

  it('refused memory: the reason and what to do', () => {
    assert.match(memoryRefused('pooled').message, /shared pool.*Buffer\.allocUnsafeSlow\(\)/);
    assert.match(memoryRefused('resizable').message, /resizable.*fixed length/);
    assert.match(memoryRefused('detached').message, /transferred/);
    assert.match(memoryRefused('empty').message, /0 bytes/);
    assert.equal(memoryRefused('pooled').code, 'EINVAL');
  });

  it('sizes', () => {
    assert.deepEqual(
      [0, 1, 1023, 1024, 1536, 64 * 1024, 8 * MIB, 3 * 2 ** 40, 2 ** 53].map(sizeText),
      [
        '0 bytes',
        '1 bytes',
        '1023 bytes',
        '1 KiB',
        '1.5 KiB',
        '64 KiB',
        '8 MiB',
        '3 TiB',
        '8192 TiB',
      ],
    );
  });
});
