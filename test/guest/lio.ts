// Linux's iSER target (LIO, ib_isert) in a guest, with one disk.
import assert from 'node:assert/strict';

import type { Guest } from './guest.js';

export const LIO_NAME = 'iqn.2024-01.io.test:disk0';
const TREE = '/sys/kernel/config/target';
const COMMAND_TIMEOUT_MS = 120_000;
export const LIO_DISK_MIB = 64;

/** By configfs: what targetcli does, without it. */
export async function startLio(guest: Guest): Promise<void> {
  const group = `${TREE}/iscsi/${LIO_NAME}/tpgt_1`;
  const core = `${TREE}/core/fileio_0/disk0`;
  await must(
    guest,
    [
      'set -e; modprobe configfs; mountpoint -q /sys/kernel/config || ' +
        'mount -t configfs configfs /sys/kernel/config',
      // Before the target's modules are loaded, or reservations cannot be kept.
      'mkdir -p /etc/target/pr /etc/target/alua',
      'modprobe -a target_core_mod target_core_file iscsi_target_mod ib_isert',
      `truncate -s ${LIO_DISK_MIB}M /tmp/disk0.img; mkdir -p ${core}`,
      `echo fd_dev_name=/tmp/disk0.img,fd_dev_size=$((${LIO_DISK_MIB} << 20)) > ${core}/control`,
      // Without a serial number LIO tells of no pages but the first.
      `echo 5c1f4a5e-0001 > ${core}/wwn/vpd_unit_serial`,
      `echo 1 > ${core}/enable; echo 1 > ${core}/attrib/emulate_tpu`,
      `mkdir -p ${group}; mkdir ${group}/np/${guest.ipv4}:3260`,
      `echo 1 > ${group}/np/${guest.ipv4}:3260/iser`,
      `mkdir ${group}/lun/lun_0; ln -s ${core} ${group}/lun/lun_0/disk0`,
      `cd ${group}/attrib; echo 0 > authentication; echo 1 > generate_node_acls`,
      'echo 0 > demo_mode_write_protect; echo 1 > cache_dynamic_acls',
      `echo 1 > ${group}/enable`,
    ].join('\n'),
  );
}

/** Its end waits for sessions: a failed case may have left one, and is told of itself. */
export async function stopLio(guest: Guest): Promise<void> {
  const group = `${TREE}/iscsi/${LIO_NAME}/tpgt_1`;
  const command = [
    `echo 0 > ${group}/enable; rm ${group}/lun/lun_0/disk0; rmdir ${group}/lun/lun_0`,
    `rmdir ${group}/np/* ${group} ${TREE}/iscsi/${LIO_NAME}`,
    `rmdir ${TREE}/core/fileio_0/disk0 ${TREE}/core/fileio_0; rm -f /tmp/disk0.img`,
  ].join('\n');
  await guest.run(command).catch((error: unknown) => {
    process.stderr.write(`guest: LIO does not end: ${String(error)}\n`);
  });
}

async function must(guest: Guest, command: string): Promise<void> {
  const { code, stderr, stdout } = await guest.run(command, { timeoutMs: COMMAND_TIMEOUT_MS });
  assert.equal(code, 0, `${command}: ${stdout}${stderr}`);
}
