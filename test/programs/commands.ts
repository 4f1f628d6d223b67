/**
 * A process of its own that starts twelve shell commands, prints the process id of each and every warning, and exits at the first line it
 * is told.
 */
import { Command } from '../../features/tools-shell/command.ts'

for (let mark = 0; mark < 12; mark++) {
  const command = new Command({
    shell: '/bin/sh',
    command: 'sleep 600',
    cwd: process.cwd(),
    env: process.env,
    mark: `commands-test-${process.pid}.${mark}`,
    onText: () => undefined,
    killGraceMs: 200,
    drainMs: 50
  })
  console.log(command.pid)
}
process.on('warning', ({ message }) => console.log(message))
process.stdin.on('data', () => process.exit(3))
