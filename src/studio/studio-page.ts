import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)))

function findRoot(folder: string): string {
  const parent = dirname(folder)
  return existsSync(join(folder, 'package.json')) || parent === folder ? folder : findRoot(parent)
}

export interface ClientCode {
  /** Scripts by address: `/client.js` and the chunks that it loads. */
  scripts: ReadonlyMap<string, string>
  style: string
  /** The whole client as one script, for exported files. */
  whole: string
}

/** Null if it was not built (`npm run build`). */
export async function readClient(): Promise<ClientCode | null> {
  const folder = join(packageRoot, 'dist/src/studio')
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')
  try {
    const parts = await readdir(join(folder, 'client'))
    const names = [
      'client.js',
      ...parts.filter((name) => name.endsWith('.js')).map((name) => `client/${name}`),
    ]
    const scripts = await Promise.all(names.map(async (name) => [`/${name}`, await read(name)] as const))
    return { scripts: new Map(scripts), style: await read('client.css'), whole: await read('file.js') }
  } catch {
    return null
  }
}

export const commonHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

/** Allows only this server, plus a frame for Stately's editor if the editor is enabled. */
export function pagePolicy(editor: string | undefined): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    ...(editor === undefined ? [] : [`frame-src ${new URL(editor).origin}`]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export const pageHtml = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Statewright studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="client.css">
<div id="app"></div>
<noscript>The studio needs JavaScript.</noscript>
<script type="module" src="client.js"></script>
`

export const unbuiltPageHtml = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Statewright studio</title>
<h1>Statewright studio</h1>
<p>The page was not built. Run npm run build. Its data is at <a href="api/sessions">api/sessions</a>.</p>
`

/** `data` is an `ExportedSession`. */
export function createExportedPage({ whole, style }: ClientCode, data: object): string {
  // Only `</script` and `<!--` are special in a script element.
  const json = JSON.stringify(data).replaceAll('<', '\\u003c')
  const code = whole.replaceAll(/<\/(script)/gi, '<\\/$1').replaceAll('<!--', '\\x3c!--')
  const policy = [
    "default-src 'none'",
    `script-src ${createHashSource(code)}`,
    `style-src ${createHashSource(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Statewright session</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<div id="app"></div>
<noscript>This file needs JavaScript.</noscript>
<script type="application/json" id="statewright">${json}</script>
<script type="module">${code}</script>
`
}

function createHashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

/**
 * Data sent to Stately's editor. Each record has the state, the event name, the reason, and the numbers of steps,
 * tokens and USD.
 */
export interface StatelyOptions {
  /** Address of the editor. Defaults to `https://editor.stately.ai/embed?auth=message`, which needs no account. */
  editor?: string
  /** Whether to also send all data that the studio shows for a record. Defaults to false. */
  withContext?: boolean
}

export const editorUrl = 'https://editor.stately.ai/embed?auth=message'

export function isWebAddress(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}
