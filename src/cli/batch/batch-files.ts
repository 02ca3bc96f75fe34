import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { AgentState, Reason, RunResult } from '../../../machines/agent/run-result.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { badUsageError, CliError } from '../command.js'
import { fileError, getErrorCode } from '../load.js'
import { waitForWrites } from '../output.js'
import { parseJsonOr } from '../../core/base/json.js'
import { asObject, asText } from '../../core/base/values.js'
import type { BatchResult } from '../../fleet/run-all.js'
import { type BatchItem, findItemFault, getBatchSessionId } from '../../fleet/batch.js'

interface DamagedLine {
  number: number
  /** The problem, phrased to complete a sentence. */
  fault: string
}

export interface InputSummary {
  count: number
  /** The first damaged lines, up to 20. */
  damaged: DamagedLine[]
  damagedCount: number
}

export type BatchInput = ReturnType<typeof openBatchInput>

/** Opens a file with one item per line. It is streamed twice, first for the check and then for the run. */
export function openBatchInput(name: string, cwd: string, batch: string) {
  const path = resolve(cwd, name)

  async function* readItems(
    onDamaged?: (line: DamagedLine) => void,
  ): AsyncGenerator<{ item: BatchItem; number: number }> {
    for await (const { text, number } of readLines(path)) {
      if (text.trim() === '') continue
      const item = parseJsonOr(text, undefined)
      const fault = item === undefined ? 'is not valid JSON.' : findItemFault(batch, item)
      if (fault === null) yield { item: item as BatchItem, number }
      else onDamaged?.({ number, fault })
    }
  }

  /** @throws {CliError} `unreadable_file`, `duplicate_id` */
  async function check(): Promise<InputSummary> {
    const info = await stat(path).catch((cause: unknown) => {
      throw fileError('unreadable_file', 'INPUT', name, cause)
    })
    // A pipe can be read only once.
    if (!info.isFile())
      throw badUsageError(`INPUT is read twice, so it must be a file. '${name}' is not a file.`, 'INPUT')
    const numbers = new Map<string, number>()
    const summary: InputSummary = { count: 0, damaged: [], damagedCount: 0 }
    const items = readItems((line) => {
      summary.damagedCount += 1
      if (summary.damaged.length < 20) summary.damaged.push(line)
    })
    for await (const { item, number } of items) {
      const before = numbers.get(item.id)
      if (before !== undefined)
        throw new CliError(
          'duplicate_id',
          `Lines ${before} and ${number} of '${name}' have the same id, '${item.id}'. Each line needs a unique id.`,
          item.id,
        )
      numbers.set(item.id, number)
      summary.count += 1
    }
    return summary
  }

  return { check, readItems }
}

/** The default id of a batch: the name of its input without invalid characters. */
export function toBatchId(path: string): string {
  const name = basename(path).replace(/\.[^.]*$/, '')
  return name
    .replaceAll(/[^A-Za-z0-9_:@-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 100)
}

interface TextLine {
  text: string
  /** From 1. */
  number: number
  /** The offset of the next line in bytes. */
  end: number
  /** False for a last line without a line break. */
  isWhole: boolean
}

/** Only a line feed ends a line. `node:readline` would also split at Unicode separators, which JSON may contain. */
async function* readLines(path: string): AsyncGenerator<TextLine> {
  let pieces: Buffer[] = []
  let number = 0
  let end = 0
  const endLine = (isWhole: boolean): TextLine => {
    const bytes = Buffer.concat(pieces)
    pieces = []
    number += 1
    end += bytes.length + (isWhole ? 1 : 0)
    const text = bytes.toString('utf8').replace(/\r$/, '')
    return { text: number === 1 ? text.replace(/^\uFEFF/, '') : text, number, end, isWhole }
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at))
      yield endLine(true)
      from = at + 1
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  }
  if (pieces.length > 0) yield endLine(false)
}

/** A line in the results file. */
export interface ResultLine {
  id: string
  session: string
  state: AgentState
  reason: Reason | null
  output: string
  /** Tokens of the run. Null if there was no run. */
  usage: Omit<Usage, 'cost'> | null
  /** Cost of the run in USD. Null if it is unknown. */
  cost: number | null
  /** The reason for the end. Set if an error, a limit or a shield ended the run. */
  error?: { code: string; message: string }
}

export function toResultLine({ item: { id }, session, result, error }: BatchResult): ResultLine {
  if (result === null) {
    const { code, message } = error ?? { code: 'internal', message: '' }
    const none = { state: 'ERROR', reason: null, output: '', usage: null, cost: null } as const
    return { id, session, ...none, error: { code, message } }
  }
  const { state, reason, output, usage: all, error: failure } = result as RunResult
  const { cost, ...usage } = all
  const details = failure && { error: { code: failure.code, message: failure.message } }
  return { id, session, state, reason, output, usage, cost, ...details }
}

/** Receives the results in the order of the input. */
export interface Results {
  write(line: ResultLine): Promise<void>
  /** `isComplete` means that there is a line for every item. */
  close(isComplete: boolean): Promise<void>
}

export function createResultStream(stdout: Writable): Results {
  return {
    async write(line) {
      if (!stdout.write(`${JSON.stringify(line)}\n`)) await waitForWrites(stdout)
    },
    close: () => Promise.resolve(),
  }
}

/**
 * Opens the results file. Lines from an earlier command are kept as long as they equal the new lines. The file is
 * rewritten from the first line that differs, such as a torn line or the line of an item that was waiting.
 * @throws {CliError} `foreign_results` for a file with other content, `unwritable_file`
 */
export async function openResultsFile(name: string, cwd: string, batch: string): Promise<Results> {
  const path = resolve(cwd, name)
  const fail = (cause: unknown): never => {
    throw fileError('unwritable_file', '--out', name, cause)
  }
  await refuseForeignFile(path, name, batch)
  const file = await open(path, 'a').catch(fail)
  /** The lines from an earlier command, for as long as this command writes the same lines. */
  let before: AsyncGenerator<TextLine> | null = readLines(path)
  let end = 0
  const truncate = async (): Promise<void> => {
    await before?.return(undefined)
    before = null
    await file.truncate(end)
  }
  return {
    async write(line) {
      const text = JSON.stringify(line)
      try {
        if (before !== null) {
          const { value: known } = await before.next()
          if (known?.isWhole && known.text === text) {
            end = known.end
            return
          }
          await truncate()
        }
        await file.appendFile(`${text}\n`)
      } catch (error) {
        fail(error)
      }
    },
    async close(isComplete) {
      // These lines are left over from an earlier, longer input.
      if (isComplete && before !== null) await truncate()
      await before?.return(undefined)
      await file.close()
    },
  }
}

async function refuseForeignFile(path: string, name: string, batch: string): Promise<void> {
  try {
    // A pipe or a device would be read without an end.
    const info = await stat(path)
    if (!info.isFile() && !info.isDirectory())
      throw badUsageError(`--out must be a file. '${name}' is not a file.`, '--out')
    for await (const line of readLines(path)) {
      if (isFromBatch(line, batch)) return
      throw new CliError(
        'foreign_results',
        `--out: '${name}' does not contain results for the batch '${batch}'. Choose another file, or remove this one.`,
        '--out',
      )
    }
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    if (getErrorCode(cause) !== 'ENOENT') throw fileError('unwritable_file', '--out', name, cause, 'read')
  }
}

/** A first line without a line break may be torn. */
function isFromBatch({ text, isWhole }: TextLine, batch: string): boolean {
  const line = asObject(parseJsonOr(text, null))
  if (line) return line['session'] === getBatchSessionId(batch, asText(line['id']))
  return !isWhole && /^\{("(i(d("(:.*)?)?)?)?)?$/s.test(text)
}
