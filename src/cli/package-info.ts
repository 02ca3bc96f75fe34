import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../studio/package-root.js'

export function readPackageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    version: string
  }
  return version
}
