// What the readers of scenarios take from Node, for a page: there are no files, and headers are checked as a browser does.

export function readFile(path: string): Promise<never> {
  return Promise.reject(new Error(`A page reads no files: ${path}`))
}

export function validateHeaderName(name: string): void {
  validateHeaderValue(name, '')
}

export function validateHeaderValue(name: string, value: string): void {
  new Headers().set(name, value)
}
