import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'

const texts = new Map()

/** The text of a module, with its original `import.meta.url`. */
export function readModule(path) {
  if (!texts.has(path)) {
    const text = readFileSync(path, 'utf8')
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
    texts.set(path, text)
  }
  return texts.get(path)
}
