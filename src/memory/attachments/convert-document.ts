import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { createRequire } from 'node:module'
import { missingPackageError } from '../../core/base/platform.js'
import { AttachmentError, type AttachmentErrorCode, type AttachmentLimits } from './attachment.js'

/** The heap limit of a conversion, in megabytes. */
const heapMb = 512
/** Maximum unpacked bytes of a PDF. Buffers double as they grow, so the largest stream is half of this limit. */
const getUnpackLimit = (maxBytes: number) => 16 * maxBytes + 32 * 1024 * 1024

type ConversionAnswer =
  | { text: string; pages?: number; read?: number }
  | { problem: ConversionProblem; detail?: string }

type ConversionProblem = 'password' | 'damaged' | 'unpacks' | 'nested'

export async function convertHtml(html: string, name: string, signal: AbortSignal): Promise<string> {
  const module = resolvePeer('html-to-text', 'html-to-text', 'Reading HTML')
  const task = { kind: 'html' as const, module, html }
  return (await runConversion(task, name, signal)).text
}

/** @throws {AttachmentError} `unreadable`, `too_large`, `no_text` */
export async function convertPdf(
  bytes: Uint8Array,
  name: string,
  { maxBytes, maxPages, maxChars }: AttachmentLimits,
  signal: AbortSignal,
): Promise<string> {
  const file = resolvePeer('pdfjs-dist/legacy/build/pdf.mjs', 'pdfjs-dist', 'Reading PDF')
  const folder = dirname(dirname(dirname(file)))
  const task = {
    kind: 'pdf' as const,
    module: pathToFileURL(file).href,
    bytes,
    // The tables for Chinese, Japanese and Korean fonts. The reader expects the trailing slash.
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
    : `${text}\n\n[Truncated: only the first ${read} of ${pages} pages are included.]`
}

/** In a thread, because untrusted documents may take unlimited time or memory, and only a thread can be stopped. */
async function runConversion(task: { kind: 'html' | 'pdf' }, name: string, signal: AbortSignal) {
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
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      worker.on('message', resolve)
      worker.on('error', reject)
      worker.on('exit', () => reject(new Error('The conversion ended without a result.')))
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

/** @throws {StatewrightError} `missing_package`, with the command that installs it */
export function resolvePeer(path: string, name: string, purpose: string): string {
  try {
    return createRequire(import.meta.url).resolve(path)
  } catch (error) {
    throw missingPackageError(purpose, name, error)
  }
}

/**
 * The program of the converter thread. It is a string, because a separate file would have to be found in every bundle.
 * The thread receives a task and posts one answer. It counts the unpacked bytes of a PDF where the reader allocates
 * memory. The output of the platform's unpacker cannot be counted, so that unpacker is removed. The reader works
 * without it.
 */
const converterSource = String.raw`
const { parentPort, workerData: task } = require('node:worker_threads')

function html() {
  const { convert } = require(task.module)
  const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6']
  const text = convert(task.html, {
    wordwrap: false,
    limits: { maxInputLength: undefined },
    selectors: [
      { selector: 'a', options: { ignoreHref: true } },
      { selector: 'img', format: 'skip' },
      { selector: 'title', format: 'skip' },
      { selector: 'template', format: 'skip' },
      { selector: 'table', format: 'dataTable', options: { uppercaseHeaderCells: false } },
      ...headings.map((selector) => ({ selector, options: { uppercase: false } })),
    ],
  })
  return { text }
}

function countRoom() {
  let left = task.room
  const charge = (size) => {
    if (typeof size !== 'number' || (left -= size) > 0) return
    parentPort.postMessage({ problem: 'unpacks' })
    process.exit()
  }
  delete globalThis.DecompressionStream
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, [size, ...rest], made) {
      charge(size)
      return Reflect.construct(target, [size, ...rest], made)
    },
  })
}

async function pdf() {
  countRoom()
  const { getDocument, VerbosityLevel } = await import(task.module)
  const document = await getDocument({
    data: task.bytes,
    verbosity: VerbosityLevel.ERRORS,
    isEvalSupported: false,
    useSystemFonts: false,
    disableFontFace: true,
    cMapUrl: task.cMaps,
    cMapPacked: true,
    standardFontDataUrl: task.fonts,
  }).promise
  const pages = document.numPages
  let text = ''
  let read = 0
  while (read < Math.min(pages, task.maxPages) && text.length <= task.maxChars) {
    read += 1
    const page = await document.getPage(read)
    if (text !== '') text += '\n\n'
    for await (const { items } of page.streamTextContent()) {
      // The stream must be read to its end, or the reader fails.
      if (text.length > task.maxChars) continue
      for (const { str = '', hasEOL } of items) text += hasEOL ? str + '\n' : str
    }
    page.cleanup()
  }
  return { text, pages, read }
}

function problemOf(error) {
  if (error?.name === 'PasswordException') return 'password'
  return error instanceof RangeError && /call stack/.test(error.message) ? 'nested' : 'damaged'
}

const work = async () => (task.kind === 'html' ? html() : pdf())
work().then(
  (answer) => parentPort.postMessage(answer),
  (error) => parentPort.postMessage({ problem: problemOf(error), detail: String(error) }),
)
`
