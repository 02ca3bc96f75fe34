import { open, type FileHandle } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { parseJsonOr } from '../../core/base/json.js'
import { asObject, asText } from '../../core/base/values.js'
import { getBatchSessionId } from '../../fleet/batch.js'
import { CliError } from '../cli-error.js'
import { describeReadError, getErrorCode } from '../load-file.js'
import { waitForWrites } from '../watch-output.js'
import { readLines, type TextLine } from './read-lines.js'
import type { ResultLine } from './result-line.js'

/** Where the lines of results go, in the order of the input. */
export interface Results {
  write(line: ResultLine): Promise<void>
  /** `isComplete`: every item has had its line. */
  close(isComplete: boolean): Promise<void>
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

/**
 * Opens the file of the results. A line that is there already is left alone. What differs is written again from there on: a
 * line that was torn, an item that waited.
 * @throws {CliError} `foreign_results` for a file that is something else, `unwritable_file`
 */
export async function openResultsFile(
  name: string,
  { cwd, batch }: { cwd: string; batch: string },
): Promise<Results> {
  const path = resolve(cwd, name)
  const unwritable = (error: unknown): CliError =>
    new CliError(
      'unwritable_file',
      `--out: '${name}' cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      '--out',
      { cause: error },
    )
  await refuseForeignFile(path, name, batch)
  let file: FileHandle
  try {
    file = await open(path, 'a')
  } catch (error) {
    throw unwritable(error)
  }
  /** The lines of an earlier call, for as long as this one writes the same. */
  let before: AsyncGenerator<TextLine> | null = readLines(path)
  let end = 0
  const cut = async (): Promise<void> => {
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
          await cut()
        }
        await file.appendFile(`${text}\n`)
      } catch (error) {
        throw unwritable(error)
      }
    },
    async close(isComplete) {
      // Lines of an earlier, longer input.
      if (isComplete && before !== null) await cut()
      await before?.return(undefined)
      await file.close()
    },
  }
}

async function refuseForeignFile(path: string, name: string, batch: string): Promise<void> {
  try {
    for await (const { text } of readLines(path)) {
      if (isOfBatch(text, batch)) return
      throw new CliError(
        'foreign_results',
        `--out: '${name}' has something else than results of the batch '${batch}'. Name another file, or remove this one.`,
        '--out',
      )
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    if (getErrorCode(error) === 'ENOENT') return
    throw new CliError('unwritable_file', `--out: ${describeReadError(error, name)}`, '--out', {
      cause: error,
    })
  }
}

/** The first line may be torn. */
function isOfBatch(text: string, batch: string): boolean {
  const line = asObject(parseJsonOr(text, null))
  if (line) return line['session'] === getBatchSessionId(batch, asText(line['id']))
  return /^\{("(i(d("(:.*)?)?)?)?)?$/s.test(text)
}
