import { open, type FileHandle } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { type BatchItem, getBatchSessionId } from '../../fleet/batch-item.js'
import { CliError } from '../cli-error.js'
import { getErrorCode } from '../load-file.js'
import { waitForWrites } from '../watch-output.js'
import { readLines } from './read-lines.js'
import { parseResultLine, type ResultLine } from './result-line.js'

/** Where the lines of results go, in the order of the input. */
export interface Results {
  write(line: ResultLine): Promise<void>
  close(): Promise<void>
}

/** Results for the next program of a pipe. */
export function createResultStream(stdout: Writable): Results {
  return {
    async write(line) {
      if (!stdout.write(`${JSON.stringify(line)}\n`)) await waitForWrites(stdout)
    },
    close: () => Promise.resolve(),
  }
}

/** What is kept of the results of an earlier call. */
export interface KeptResults {
  results: Results
  /** How many items at the beginning of the input have their line. */
  count: number
  /** Of those, in USD; null where one is not known. */
  cost: number | null
}

/**
 * Opens the file of the results. Lines at its beginning that are the completed results of the first items stay. What comes
 * after them is written again from the store: a line that was torn, an item that waited, an item that failed.
 * @throws {CliError} `foreign_results` for a file that is something else, `unwritable_file`
 */
export async function openResultsFile(
  name: string,
  { cwd, batch, items }: { cwd: string; batch: string; items: AsyncIterable<BatchItem> },
): Promise<KeptResults> {
  const path = resolve(cwd, name)
  const unwritable = (error: unknown): CliError =>
    new CliError(
      'unwritable_file',
      `--out: '${name}' cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      '--out',
      { cause: error },
    )
  const kept = await readKept(path, { name, batch, items })
  let file: FileHandle
  try {
    file = await open(path, 'a')
    await file.truncate(kept.end)
  } catch (error) {
    throw unwritable(error)
  }
  return {
    count: kept.count,
    cost: kept.cost,
    results: {
      async write(line) {
        try {
          await file.appendFile(`${JSON.stringify(line)}\n`)
        } catch (error) {
          throw unwritable(error)
        }
      },
      close: () => file.close(),
    },
  }
}

async function readKept(
  path: string,
  { name, batch, items }: { name: string; batch: string; items: AsyncIterable<BatchItem> },
): Promise<{ count: number; end: number; cost: number | null }> {
  const kept = { count: 0, end: 0, cost: 0 as number | null }
  const inOrder = items[Symbol.asyncIterator]()
  try {
    for await (const { text, number, end, isWhole } of readLines(path)) {
      const line = parseResultLine(text)
      if (number === 1 && !isOfBatch(text, line, batch))
        throw new CliError(
          'foreign_results',
          `--out: '${name}' has something else than results of the batch '${batch}'. Name another file, or remove this one.`,
          '--out',
        )
      const next = await inOrder.next()
      if (next.done || !isWhole || !line || !isCompletedResult(line, batch, next.value)) break
      kept.count += 1
      kept.end = end
      kept.cost = kept.cost === null || line.cost === null ? null : kept.cost + line.cost
    }
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return kept
    throw error
  } finally {
    await inOrder.return?.()
  }
  return kept
}

function isCompletedResult({ id, session, state }: ResultLine, batch: string, item: BatchItem): boolean {
  return id === item.id && session === getBatchSessionId(batch, item.id) && state === 'COMPLETED'
}

/** The first line may be torn. */
function isOfBatch(text: string, line: ResultLine | undefined, batch: string): boolean {
  if (line) return line.session === getBatchSessionId(batch, line.id)
  return /^\{("(i(d("(:.*)?)?)?)?)?$/s.test(text)
}
