import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExportedSession } from './protocol.js'

/** The folder of this package's package.json. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)))

function findRoot(folder: string): string {
  const parent = dirname(folder)
  return existsSync(join(folder, 'package.json')) || parent === folder ? folder : findRoot(parent)
}

/** The built code of the page. */
export interface ClientCode {
  /** The scripts by their address: `/client.js`, and the parts that it loads. */
  scripts: ReadonlyMap<string, string>
  style: string
  /** All of it as one script, for a file. */
  whole: string
}

/** Null when the page was not built (`npm run build`). */
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

/** The headers of every response. */
export const commonHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

/** Only what comes from here, and nothing to other origins; but for Stately's editor in a frame, where it was asked for. */
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

/** Shown when the page was not built. */
export const unbuiltPageHtml = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Statewright studio</title>
<h1>Statewright studio</h1>
<p>The page was not built: npm run build. What it would show is at <a href="api/sessions">api/sessions</a>.</p>
`

/** One HTML file with a session, which makes no requests. */
export function createExportedPage({ whole, style }: ClientCode, data: ExportedSession): string {
  // In a script element, only `</script` and `<!--` are special.
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
 * What Stately's editor is told: of each record the state, the event's name, the reason, and the numbers of steps, tokens
 * and USD.
 */
export interface StatelyOptions {
  /** Where the editor is. Default `https://editor.stately.ai/embed?auth=message`, which asks for no account. */
  editor?: string
  /** Tells it all that the studio shows of a record. Default false. */
  withContext?: boolean
}

/** Where Stately's editor can be embedded, without an account. */
export const editorUrl = 'https://editor.stately.ai/embed?auth=message'

/** Whether a page may be loaded from there. */
export function isWebAddress(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}
