// A worker cannot be started from a file, so a page that was opened as one searches in a frame.
// (The plugin `offline` would load a script by this name from another host.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      this.loaded = new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        Object.assign(script, {src: url, onload: done, onerror: failed});
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data})));
    }
    terminate() { this.frame.remove(); }
  };
}
