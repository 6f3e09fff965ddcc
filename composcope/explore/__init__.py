"""How it is touched: `composcope explore` serves one page, on which models are asked, watched and
looked into.

    requests   what may be asked, with its bounds        server   HTTP: who may ask, and the streams
    worker     the process that computes, and its queue  stage    the models: draw, judge, look
    serving    the process: a socket and a link to it      static/  the page: ES modules and CSS

Only `stage` imports torch, and only in the worker: the process that answers the browser stays free
to answer."""
