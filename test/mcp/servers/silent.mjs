// Never answers anything, says something that is no MCP, and does not go when it is asked to.
console.log('Welcome to my server!')
console.log('{"welcome":"to my server"}')
console.error(`Loading the universe … as ${process.pid}`)
process.on('SIGTERM', () => undefined)
setInterval(() => undefined, 1000)
