import { mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { type Clock, readElapsed, unrefTimer } from '../core/base/clock.js'
import { readProperty } from '../core/base/json.js'
import { createPaint, type Paint } from '../core/format/format-words.js'
import { CliError, type CliIO } from './command.js'
import { fileError } from './load.js'

export function formatJsonLine(value: unknown): string {
  return `${escapeJson(JSON.stringify(value))}\n`
}

/** Escapes the control characters that JSON allows but terminals interpret. */
export function escapeJson(json: string): string {
  return json.replaceAll(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** FORCE_COLOR takes precedence over NO_COLOR, and both over the check for a terminal. */
export function wantsColor(stream: { isTTY?: boolean }, env: CliIO['env']): boolean {
  const forced = env.FORCE_COLOR
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (env.NO_COLOR) return false
  return stream.isTTY === true && env.TERM !== 'dumb'
}

export function createOutputPaint({ stdout, env }: Pick<CliIO, 'stdout' | 'env'>): Paint {
  return createPaint(wantsColor(stdout, env))
}

interface RowsView<Row> {
  isJson: boolean | undefined
  empty: string
  heads: readonly string[]
  toCells: (row: Row) => string[]
}

export function writeRows<Row>(
  rows: readonly Row[],
  { isJson, empty, heads, toCells }: RowsView<Row>,
  io: CliIO,
): void {
  if (isJson) for (const row of rows) io.stdout.write(formatJsonLine(row))
  else if (rows.length === 0) io.stdout.write(`${empty}\n`)
  else io.stdout.write(formatTable(heads, rows.map(toCells), { paint: createOutputPaint(io) }))
}

interface TableLook {
  paint: Paint
  numeric?: readonly string[]
  /** Styles a cell after it has been aligned. */
  style?: (cell: string, column: string, row: number) => string
}

/** Formats a header and one line per row. The last column is not padded. */
export function formatTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  { paint, numeric = [], style = (cell) => cell }: TableLook,
): string {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)))
  const align = (row: readonly string[]): string[] =>
    row.map((cell, i) => {
      const head = heads[i] ?? ''
      if (numeric.includes(head)) return cell.padStart(widths[i] ?? 0)
      return i === heads.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)
    })
  const lines = rows.map((row, number) =>
    align(row)
      .map((cell, i) => style(cell, heads[i] ?? '', number))
      .join('  ')
      .trimEnd(),
  )
  return [paint('dim', align(heads).join('  ')), ...lines, ''].join('\n')
}

/** Formats `2026-05-01 12:00:03` (UTC). */
export function formatTimestamp(at: number): string {
  return formatIsoTime(at)?.slice(0, 19).replace('T', ' ') ?? '?'
}

/** Formats `2026-05-01T12:00:03.120Z`. Null for an invalid time from a damaged store. */
export function formatIsoTime(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}

const terminalMs = 100
const logMs = 5000

/** Redrawn on a terminal. `hasData`: stdout prints data, which must not mix with a redrawn line on the same terminal. */
export function createProgressLine(
  { stdout, stderr, env }: Pick<CliIO, 'stdout' | 'stderr' | 'env'>,
  clock: Clock,
  { hasData = false }: { hasData?: boolean } = {},
) {
  const isTerminal = stderr.isTTY === true && !hasData && env['TERM'] !== 'dumb'
  const isOff = stderr.isTTY === true && hasData && stdout.isTTY === true
  let text: string | null = null
  let shown = ''
  let lastAt = isTerminal ? -Infinity : readElapsed(clock)
  let timer: unknown

  function stopTimer(): void {
    clock.clearTimeout(timer)
    timer = undefined
  }

  function draw(): void {
    stopTimer()
    if (text === null) return
    lastAt = readElapsed(clock)
    if (!isTerminal) return void stderr.write(`statewright: ${text}\n`)
    const width = Math.max(1, (stderr.columns ?? 80) - 1)
    const line = Array.from(text).slice(0, width).join('')
    if (line === shown) return
    stderr.write(`\r${line}\u001B[K`)
    shown = line
  }

  function erase(): void {
    if (shown === '') return
    stderr.write('\r\u001B[K')
    shown = ''
  }

  return {
    /** `bar` is shown only on terminals. */
    update(words: string, bar = ''): void {
      if (isOff) return
      text = isTerminal ? bar + words : words
      const waitMs = lastAt + (isTerminal ? terminalMs : logMs) - readElapsed(clock)
      // Does not depend on the timer, which cannot fire during a computation.
      if (waitMs <= 0) return draw()
      if (timer !== undefined) return
      timer = clock.setTimeout(draw, waitMs)
      unrefTimer(timer)
    },
    /** Writes a permanent line above the progress. */
    note(line: string): void {
      erase()
      stderr.write(`${line}\n`)
      if (isTerminal) draw()
    },
    close(): void {
      stopTimer()
      erase()
      text = null
    },
  }
}

/** A full disk behind `> FILE` must not count as success. A closed pipe (`| head`) is not a failure. */
export function watchOutput(stream: Writable): { end(): Promise<string | null> } {
  let fault: Error | null = null
  const note = (error: Error | null): void => {
    if (readProperty(error, 'code') !== 'EPIPE') fault ??= error
  }
  stream.on('error', note)
  return {
    /** Waits for all writes. Returns the reason if a write failed, otherwise null. */
    async end() {
      await waitForWrites(stream)
      // Listeners receive a failure later, and the next write to stdout clears `errored`.
      note(stream.errored)
      return fault === null ? null : fault.message
    },
  }
}

export function waitForWrites(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) resolve()
    else stream.write('', () => resolve())
  })
}

interface WriteFileOptions {
  /** Name of the option for errors. Defaults to `--out`. */
  option?: string
  /** Whether to replace an existing file. Defaults to true. */
  replace?: boolean
  mode?: number
  makeFolder?: boolean
}

/** Writes to a file that the user named, or to stdout. @throws {CliError} `unwritable_file` */
export async function writeOutput(
  text: string,
  file: string | undefined,
  { cwd, stdout }: Pick<CliIO, 'cwd' | 'stdout'>,
  { option = '--out', replace = true, mode, makeFolder = false }: WriteFileOptions = {},
): Promise<void> {
  if (file === undefined) return void stdout.write(text)
  const path = resolve(cwd, file)
  if (makeFolder)
    await mkdir(dirname(path), { recursive: true }).catch((cause: unknown) => {
      const isFile = ['EEXIST', 'ENOTDIR'].includes(String(readProperty(cause, 'code')))
      if (!isFile) throw fileError('unwritable_file', option, dirname(path), cause)
      const message = `${option}: '${dirname(path)}' is not a folder.`
      throw new CliError('unwritable_file', message, option, { cause })
    })
  let isNew = false
  try {
    const handle = await open(path, replace ? 'w' : 'wx', mode)
    try {
      isNew = !replace
      await handle.writeFile(text)
    } finally {
      await handle.close()
    }
  } catch (cause) {
    // A partial copy must not remain.
    if (isNew) await rm(path, { force: true }).catch(() => undefined)
    throw fileError('unwritable_file', option, file, cause)
  }
}

/**
 * Replaces an existing file only if it starts with `firstLine`, so that a handwritten file is never lost.
 * @throws {CliError} `unwritable_file`
 */
export async function writeGenerated(
  path: string,
  text: string,
  firstLine: string,
  io: Pick<CliIO, 'cwd' | 'stdout'>,
): Promise<void> {
  const before = await readFile(path, 'utf8').catch((cause: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(String(readProperty(cause, 'code')))) return undefined
    throw fileError('unwritable_file', '--emit', path, cause, 'read')
  })
  if (before !== undefined && !before.startsWith(firstLine))
    throw new CliError(
      'unwritable_file',
      `--emit: '${path}' is not a generated file, so it was not replaced. Move it, or choose another folder.`,
      '--emit',
    )
  await writeOutput(text, path, io, { option: '--emit', makeFolder: true })
}
