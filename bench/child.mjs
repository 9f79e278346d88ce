// One case of one side in this process: node --expose-gc child.mjs <workload> <JSON of the options>. Prints the figures.

const [name, options] = process.argv.slice(2);
const { default: workload } = await import(`./workloads/${name}.mjs`);
console.log(JSON.stringify(await workload.run(JSON.parse(options))));
// Connections that are kept alive would keep the process.
process.exit(0);
