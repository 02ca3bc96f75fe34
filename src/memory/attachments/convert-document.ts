import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { AttachmentError, type AttachmentErrorCode } from './attachment-error.js'
import { converterSource } from './converter-source.js'
import type { AttachmentLimits } from './attachment-limits.js'
import { resolvePeer } from './resolve-peer.js'

/** Megabytes of heap that a conversion may use. */
const heapMb = 512
/** Bytes that a PDF may unpack to. Buffers double as they grow, so that the largest stream is half of it. */
const getUnpackLimit = (maxBytes: number) => 16 * maxBytes + 32 * 1024 * 1024

type ConversionTask =
  | { kind: 'html'; module: string; html: string }
  | {
      kind: 'pdf'
      module: string
      bytes: Uint8Array
      cMaps: string
      fonts: string
      maxPages: number
      maxChars: number
      room: number
    }

type ConversionAnswer =
  | { text: string; pages?: number; read?: number }
  | { problem: ConversionProblem; detail?: string }

type ConversionProblem = 'password' | 'damaged' | 'unpacks' | 'nested'

/** The text of a page. */
export async function convertHtml(html: string, name: string, signal: AbortSignal): Promise<string> {
  const module = resolvePeer('html-to-text', 'html-to-text', 'Reading HTML')
  return (await runConversion({ kind: 'html', module, html }, name, signal)).text
}

/**
 * The text of all pages, with a note when there are more than `maxPages`.
 * @throws {AttachmentError} `unreadable`, `too_large`, `no_text`
 */
export async function convertPdf(
  bytes: Uint8Array,
  name: string,
  { maxBytes, maxPages, maxChars }: AttachmentLimits,
  signal: AbortSignal,
): Promise<string> {
  const file = resolvePeer('pdfjs-dist/legacy/build/pdf.mjs', 'pdfjs-dist', 'Reading PDF')
  const folder = dirname(dirname(dirname(file)))
  const task: ConversionTask = {
    kind: 'pdf',
    module: pathToFileURL(file).href,
    bytes,
    // For text in Chinese, Japanese and Korean. The reader wants folders to end like this.
    cMaps: `${join(folder, 'cmaps')}/`,
    fonts: `${join(folder, 'standard_fonts')}/`,
    maxPages,
    maxChars,
    room: getUnpackLimit(maxBytes),
  }
  const { text, pages = 0, read = 0 } = await runConversion(task, name, signal)
  if (text.trim() === '') {
    throw new AttachmentError(
      'no_text',
      name,
      `has no text on its ${read} pages, only images. Run it through OCR first.`,
    )
  }
  return text.length > maxChars || read === pages
    ? text
    : `${text}\n\n[Cut here: only the first ${read} of ${pages} pages are kept.]`
}

/**
 * Converts in a thread of its own: what strangers have written may take forever or fill memory, and only a thread can
 * be stopped. It also keeps the event loop free.
 */
async function runConversion(task: ConversionTask, name: string, signal: AbortSignal) {
  const worker = new Worker(converterSource, {
    eval: true,
    workerData: task,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
  })
  try {
    const answer = await new Promise<ConversionAnswer>((resolve, reject) => {
      signal.addEventListener(
        'abort',
        () => {
          reject(signal.reason)
        },
        { once: true },
      )
      worker.on('message', resolve)
      worker.on('error', reject)
      worker.on('exit', () => {
        reject(new Error('The conversion ended without an answer.'))
      })
    })
    if ('problem' in answer) throw conversionError(answer.problem, name, answer.detail)
    return answer
  } catch (error) {
    if (signal.aborted || error instanceof AttachmentError) throw error
    const tooMuch = (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY'
    throw tooMuch ? conversionError('unpacks', name, error) : conversionError('damaged', name, error)
  } finally {
    await worker.terminate()
  }
}

const problems: Record<ConversionProblem, [AttachmentErrorCode, string]> = {
  password: ['unreadable', 'is protected by a password. Remove it first.'],
  unpacks: ['too_large', 'needs too much memory to be read.'],
  nested: ['unreadable', 'is nested too deeply to be read.'],
  damaged: ['unreadable', 'is damaged and cannot be read.'],
}

function conversionError(problem: ConversionProblem, name: string, cause?: unknown): AttachmentError {
  const [code, message] = problems[problem]
  return new AttachmentError(code, name, message, { cause })
}
