/**
 * The program of the thread that converts: a text, because a thread needs a file or a text, and a file would have to be
 * found in every bundle. It gets a task and posts one answer.
 *
 * What a PDF unpacks to is counted where its reader makes room for it; the browser's own unpacker, which cannot be
 * counted, is taken away, and the reader does without.
 */
export const converterSource = String.raw`
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
      // The stream is read to its end all the same: the reader does not bear to be left.
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
