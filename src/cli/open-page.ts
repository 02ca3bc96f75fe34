import { spawn } from 'node:child_process'

/** Opens a page in the user's browser. Failures are ignored: the caller prints the address, too. */
export function openPage(url: string): void {
  const [command = '', ...args] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}

const openers: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  // Not `cmd /c start`, which takes the & of an address for the end of its command.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
