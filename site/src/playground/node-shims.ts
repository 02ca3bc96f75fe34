// Browser replacements for the Node modules of the scenario readers. There are no files, and headers follow the browser's rules.

export function readFile(path: string): Promise<never> {
  return Promise.reject(new Error(`Files cannot be read in a browser: ${path}`))
}

export function validateHeaderName(name: string): void {
  validateHeaderValue(name, '')
}

export function validateHeaderValue(name: string, value: string): void {
  new Headers().set(name, value)
}
