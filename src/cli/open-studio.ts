import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { whenAborted } from '../core/base/abort.js'
import type { Studio, StudioOptions } from '../studio/index.js'
import type { CliIO } from './command.js'

/** Starts the studio and says where it is; `offerAddresses` says where for another browser. */
export async function openStudio(
  options: StudioOptions,
  { stderr }: Pick<CliIO, 'stderr'>,
  { inBrowser = false } = {},
): Promise<Studio> {
  const { startStudio } = await import('../studio/index.js')
  const studio = await startStudio(options)
  const { url } = studio
  stderr.write(`Studio: ${url}\nOpen it in a browser on this machine; Ctrl-C ends it.\n`)
  if (inBrowser) openPage(url)
  return studio
}

/** Resolves when the person interrupts. Until then Enter gives an address for another browser: each opens one. */
export async function waitForInterrupt(
  { signal, stdin, stderr }: Pick<CliIO, 'signal' | 'stdin' | 'stderr'>,
  studio: Studio,
): Promise<void> {
  // The terminal keeps its own line editing, and Ctrl-C stays a signal.
  const lines = stdin.isTTY === true ? createInterface({ input: stdin, terminal: false }) : null
  if (lines) stderr.write('Enter gives an address for another browser.\n')
  lines?.on('line', () => {
    stderr.write(`Studio: ${studio.url}\n`)
  })
  await new Promise<void>((resolve) => {
    whenAborted(signal, () => {
      resolve()
    })
  })
  lines?.close()
}

/** Where that is not possible, the address is there to be clicked. */
function openPage(url: string): void {
  const [command = '', ...args] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}

const openers: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}
