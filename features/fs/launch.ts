/** Applications of the user, started on the machine of the server. */
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { AppError, InternalError } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { withPin } from './boundary.ts'

export type AppId = 'finder' | 'editor_a' | 'editor_b' | 'terminal_app' | 'terminal'

/** A program with its arguments. */
export type Command = readonly [program: string, ...args: string[]]

export interface Target {
  /** Absolute, links resolved. */
  readonly path: string
  readonly directory: boolean
  readonly line?: number | undefined
}

export function targetOf(root: Root, path: string, line?: number): Promise<Target> {
  return withPin(root, path, async ({ real, stats }) => ({ path: real, directory: stats.isDirectory(), line }))
}

/** A program that ends with a failure this soon did not come up. */
const START_MS = 1_500

/** `open` of the contract: `SVC_CODE_EDITOR`, `VISUAL` or `EDITOR` for files, and what the system opens the path with. */
export function openCommands(target: Target, env: NodeJS.ProcessEnv, platform = process.platform): Command[] {
  const editor = target.directory ? undefined : [env.SVC_CODE_EDITOR, env.VISUAL, env.EDITOR].find(text => text?.trim())
  return [...(editor === undefined ? [] : [editorCommand(editor.trim().split(/\s+/), target)]), ...systemCommands(target.path, platform)]
}

const folderOf = ({ path, directory }: Target) => (directory ? path : dirname(path))

/** Applications by their id: the first of the commands that works. `editors`: programs of editor_a and editor_b. */
export function appCommands(
  app: AppId,
  target: Target,
  editors: Readonly<Record<'editor_a' | 'editor_b', string>>,
  platform = process.platform
): Command[] {
  const folder = folderOf(target)
  switch (app) {
    case 'finder':
      return systemCommands(folder, platform)
    case 'editor_a':
    case 'editor_b':
      return [editorCommand(editors[app].trim().split(/\s+/), target)]
    case 'terminal_app':
      if (platform === 'darwin') return [['open', '-a', 'iTerm', folder]]
      if (platform === 'win32') return [['wt.exe', '-d', folder]]
      return [
        ['gnome-terminal', `--working-directory=${folder}`],
        ['konsole', '--workdir', folder]
      ]
    case 'terminal':
      if (platform === 'darwin') return [['open', '-a', 'Terminal', folder]]
      if (platform === 'win32') return [['cmd.exe', '/c', 'start', '/d', folder, 'cmd.exe']]
      return [['x-terminal-emulator'], ['xterm']]
  }
}

/** Shows a file in its directory. */
export function revealCommands({ path, directory }: Target, platform = process.platform): Command[] {
  if (platform === 'darwin') return [['open', '-R', path]]
  if (platform === 'win32') return [['explorer.exe', `/select,${path}`]]
  const url = `file://${path.split('/').map(encodeURIComponent).join('/')}`
  const show = ['--session', '--print-reply', '--dest=org.freedesktop.FileManager1', '/org/freedesktop/FileManager1']
  return [
    ['dbus-send', ...show, 'org.freedesktop.FileManager1.ShowItems', `array:string:${url}`, 'string:'],
    ...systemCommands(directory ? path : dirname(path), platform)
  ]
}

function systemCommands(path: string, platform: NodeJS.Platform): Command[] {
  if (platform === 'darwin') return [['open', path]]
  return platform === 'win32' ? [['explorer.exe', path]] : [['xdg-open', path]]
}

/** Editors of one family take the line behind a colon, most others as `+12`. */
function editorCommand([program = '', ...args]: readonly string[], { path, line }: Target): Command {
  if (line === undefined) return [program, ...args, path]
  const name = program.replaceAll('\\', '/').split('/').at(-1) ?? ''
  if (/^(?:code|code-insiders|codium|cursor|windsurf)(?:\.cmd)?$/.test(name)) return [program, ...args, '--goto', `${path}:${line}`]
  if (/^(?:subl|zed)$/.test(name)) return [program, ...args, `${path}:${line}`]
  return /^(?:n?vim?|nano|emacs|emacsclient|gedit|kate)$/.test(name) ? [program, ...args, `+${line}`, path] : [program, ...args, path]
}

/** Starts the first command that works, in the directory of the file and apart from this server. Throws 50001 when none does. */
export async function launch(commands: readonly Command[], target: Target, env: NodeJS.ProcessEnv): Promise<void> {
  const causes: unknown[] = []
  for (const command of commands) {
    try {
      await start(command, folderOf(target), env)
      return
    } catch (error) {
      causes.push(error)
    }
  }
  const programs = commands.map(([program]) => program.slice(0, 200)).join(', ')
  throw new AppError(InternalError, { message: `no application could be started (${programs})`, cause: new AggregateError(causes) })
}

function start([program, ...args]: Command, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SVC_CODE_'))) // credentials among them
    const child = spawn(program, args, { cwd, env: own, detached: true, stdio: 'ignore', windowsHide: true })
    const settle = (act: () => void) => {
      clearTimeout(timer)
      child.removeAllListeners('exit')
      act()
    }
    const timer = setTimeout(() => settle(resolve), START_MS)
    child.once('error', error => settle(() => reject(error)))
    child.once('exit', code => settle(() => (code === 0 ? resolve() : reject(new Error(`ended with ${code ?? 'a signal'}`)))))
    child.unref()
  })
}
